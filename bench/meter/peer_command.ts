// Owns: a peer's command line: its placeholders, filled in. Must not: run it.

export interface PeerPlace {
  readonly envoyPath: string;
  readonly bootstrapPath: string;
  readonly baseId: number;
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
}

export const PLACEHOLDERS = ["envoy", "bootstrap", "base_id", "drain_s", "parent_shutdown_s"] as const;

type Placeholder = typeof PLACEHOLDERS[number];

/** Undefined: fine. */
export function peerProblem(command: string): string | undefined {
  if (command.trim() === "") return "an empty command";
  const known: readonly string[] = PLACEHOLDERS;
  const unknown = [...command.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).find((name) => !known.includes(name));
  return unknown === undefined ? undefined : `unknown placeholder {${unknown}}`;
}

/**
 * One simple command of the shell, without `exec`. A supervisor that starts a script of the user's finds the same values in its
 * environment: METER_ENVOY, METER_BOOTSTRAP, METER_BASE_ID, METER_DRAIN_S, METER_PARENT_SHUTDOWN_S.
 */
export function peerCommand(
  command: string,
  place: PeerPlace,
): { readonly line: string; readonly environment: Readonly<Record<string, string>> } {
  const values: Readonly<Record<Placeholder, string>> = {
    envoy: place.envoyPath,
    bootstrap: place.bootstrapPath,
    base_id: String(place.baseId),
    drain_s: String(place.drainTimeMs / 1000),
    parent_shutdown_s: String(place.parentShutdownTimeMs / 1000),
  };
  const line = command.replaceAll(/\{(\w+)\}/g, (_, name: Placeholder) => quoted(values[name]));
  const environment = Object.entries(values).map(([name, value]) => [`METER_${name.toUpperCase()}`, value]);
  return { line, environment: Object.fromEntries(environment) };
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
