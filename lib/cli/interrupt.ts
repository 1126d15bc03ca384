// Owns: the end of a command that goes on until somebody has seen enough. Must not: exit.

export interface Interrupt {
  /** Resolves at Ctrl-C or SIGTERM. */
  readonly asked: Promise<void>;
  readonly wasAsked: boolean;
  /** Signals do again what they did before. */
  end(): void;
}

export function onInterrupt(stop: () => void = () => {}): Interrupt {
  let wasAsked = false;
  let resolve: () => void;
  const asked = new Promise<void>((done) => resolve = done);
  const hear = () => {
    wasAsked = true;
    stop();
    resolve();
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) Deno.addSignalListener(signal, hear);
  return {
    asked,
    get wasAsked() {
      return wasAsked;
    },
    end: () => signals.forEach((signal) => Deno.removeSignalListener(signal, hear)),
  };
}
