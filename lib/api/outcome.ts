// Owns: what became of one request for a new epoch, told from the facts that name it. Must not: wait or know HTTP.

import { type Refusal, refusal } from "../core/refusal.ts";
import type { RecordedFact } from "../observe/record.ts";

/** `accepted`: it waits or runs. `live`: the new epoch serves. `drained`: and its predecessor has ended. */
export type Until = "accepted" | "live" | "drained";
export const untils: readonly Until[] = ["accepted", "live", "drained"];

export type Outcome =
  | { readonly kind: "accepted" }
  | { readonly kind: "live"; readonly from: number; readonly to: number; readonly tookMs: number }
  | {
    readonly kind: "drained";
    readonly from: number;
    readonly to: number;
    readonly tookMs?: number;
    readonly drainedMs: number;
  }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Feed it every record in order; it answers once, at the outcome that is waited for. */
export function followRequest(
  service: string,
  request: string,
  until: Until,
): (record: RecordedFact) => Outcome | undefined {
  let tookMs: number | undefined;
  return ({ service: subject, fact }) => {
    if (subject !== service) return undefined;
    if (fact.kind === "ended") {
      return { kind: "refused", refusal: refusal("stopping", `service ${service} has ended: ${fact.reason}`) };
    }
    if (!("requests" in fact) || !fact.requests.includes(request)) return undefined;
    switch (fact.kind) {
      case "trigger_dropped":
      case "handoff_failed":
        return { kind: "refused", refusal: fact.refusal };
      case "handoff_live":
        tookMs = fact.tookMs;
        return until === "drained" ? undefined : { kind: "live", from: fact.from, to: fact.to, tookMs };
      case "handoff_done":
        return {
          kind: "drained",
          from: fact.from,
          to: fact.to,
          drainedMs: fact.drainedMs,
          ...(tookMs === undefined ? {} : { tookMs }),
        };
      case "trigger_accepted":
      case "trigger_coalesced":
      case "handoff_began":
        return until === "accepted" ? { kind: "accepted" } : undefined;
    }
  };
}
