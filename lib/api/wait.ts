// Owns: waiting for what becomes of requests, without missing what happens before their names are known. Must not: ask.

import { refusal } from "../core/refusal.ts";
import type { RecordedFact } from "../observe/record.ts";
import type { Control } from "../runtime/control.ts";
import { followRequest, type Outcome, type Until } from "./outcome.ts";

type Follow = (record: RecordedFact) => Outcome | undefined;

export interface Waiter {
  /** Undefined: not in time, or the client has gone. */
  outcome(service: string, request: string, until: Until, boundMs: number): Promise<Outcome | undefined>;
  /** Of a service that is started, not replaced. */
  started(service: string, boundMs: number): Promise<Outcome | undefined>;
  close(): void;
}

/** Begin it before anything is asked. `afterSeq`: what is held of the past counts too. */
export function waiter(control: Control, gone: AbortSignal, afterSeq?: number): Waiter {
  const seen: RecordedFact[] = [];
  const watching = new Set<(record: RecordedFact) => void>();
  const unsubscribe = control.subscribe((record) => {
    seen.push(record);
    for (const watch of [...watching]) watch(record);
  }, afterSeq);
  const until = (follow: Follow, boundMs: number) =>
    new Promise<Outcome | undefined>((resolve) => {
      const settle = (found: Outcome | undefined) => {
        clearTimeout(timer);
        gone.removeEventListener("abort", giveUp);
        watching.delete(watch);
        resolve(found);
      };
      const giveUp = () => settle(undefined);
      const watch = (record: RecordedFact) => {
        const found = follow(record);
        if (found !== undefined) settle(found);
        return found !== undefined;
      };
      const timer = setTimeout(giveUp, boundMs);
      if (seen.some(watch)) return;
      if (gone.aborted) return giveUp();
      gone.addEventListener("abort", giveUp);
      watching.add(watch);
    });
  return {
    outcome: (service, request, wanted, boundMs) => until(followRequest(service, request, wanted), boundMs),
    started: (service, boundMs) => until(followStart(service), boundMs),
    close: () => {
      watching.clear();
      unsubscribe();
    },
  };
}

function followStart(service: string): Follow {
  return ({ service: subject, fact }) => {
    if (subject !== service) return undefined;
    if (fact.kind === "epoch_live") return { kind: "live", from: fact.epoch, to: fact.epoch, tookMs: fact.tookMs };
    if (fact.kind !== "ended") return undefined;
    return { kind: "refused", refusal: refusal("child_died", `service ${service} has ended: ${fact.reason}`) };
  };
}
