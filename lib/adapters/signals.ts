// Owns: the signals that a supervisor listens to. Must not: know what they mean.

export type HeardSignal = "SIGHUP" | "SIGTERM" | "SIGINT" | "SIGUSR1";

/** Calls back for each signal; the result ends it, and gives the signals their default action again. */
export function onSignals(heard: Readonly<Partial<Record<HeardSignal, () => void>>>): () => void {
  const listening = Object.entries(heard) as [HeardSignal, () => void][];
  for (const [signal, act] of listening) Deno.addSignalListener(signal, act);
  return () => {
    for (const [signal, act] of listening.splice(0)) Deno.removeSignalListener(signal, act);
  };
}
