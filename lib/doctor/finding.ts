// Owns: what a check of the doctor says. Must not: check.

export interface Finding {
  /** Names are API: `shared_memory`, `base_id`, ... */
  readonly check: string;
  /** `fail`: the next hot restart breaks. `warn`: it may, or costs more than it should. `unknown`: can't be seen from here, or not yet. */
  readonly verdict: "ok" | "warn" | "fail" | "unknown";
  /** What was found, with its value. */
  readonly found: string;
  /** What to do; with every `warn` and `fail`. */
  readonly todo?: string;
}

export type Found = Omit<Finding, "check">;

export function ok(found: string): Found {
  return { verdict: "ok", found };
}

export function unknown(found: string): Found {
  return { verdict: "unknown", found };
}

export function warn(found: string, todo: string): Found {
  return { verdict: "warn", found, todo };
}

export function fail(found: string, todo: string): Found {
  return { verdict: "fail", found, todo };
}
