// Owns: one handoff as the spans of one trace, in OTLP's JSON. Must not: send, or time anything by itself.

import type { LedgerEntry } from "./ledger.ts";

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1: internal. */
  readonly kind: 1;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  /** 1: ok, 2: error. */
  readonly status: { readonly code: 1 | 2; readonly message?: string };
}

export interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
}

/** The handoff, and in it its preflight, the start of the successor and the drain of the predecessor, as far as it came. */
export function spansOf(entry: LedgerEntry): readonly Span[] {
  const { preflightMs, startMs, liveMs, drainMs, refusal, outcome } = entry;
  const beganMs = Date.parse(entry.beganAt);
  const traceId = randomHex(16);
  const rootId = randomHex(8);
  const liveAtMs = liveMs === undefined ? undefined : beganMs + liveMs;
  const endedMs = (liveAtMs ?? beganMs + (preflightMs ?? 0)) + (drainMs ?? 0);
  const failure = outcome === "failed" ? { code: 2, message: refusal?.detail ?? outcome } as const : undefined;
  const part = (name: string, fromMs: number, toMs: number, status: Span["status"] = { code: 1 }): Span => ({
    traceId,
    spanId: randomHex(8),
    parentSpanId: rootId,
    name,
    kind: 1,
    ...times(fromMs, toMs),
    attributes: [],
    status,
  });
  // A refusal belongs to the phase that it ended.
  const passed = entry.bootstrapDigest !== undefined;
  return [
    {
      traceId,
      spanId: rootId,
      name: "handoff",
      kind: 1,
      ...times(beganMs, endedMs),
      attributes: attributesOf(entry),
      status: failure ?? { code: 1 },
    },
    ...(preflightMs === undefined
      ? []
      : [part("preflight", beganMs, beganMs + preflightMs, passed ? undefined : failure)]),
    ...(liveAtMs === undefined || startMs === undefined ? [] : [part("start", liveAtMs - startMs, liveAtMs)]),
    ...(liveAtMs === undefined || drainMs === undefined ? [] : [part("drain", liveAtMs, liveAtMs + drainMs)]),
  ];
}

function attributesOf(entry: LedgerEntry): readonly Attribute[] {
  const values: Readonly<Record<string, string | number | undefined>> = {
    "epochd.service": entry.service,
    "epochd.handoff": entry.handoff,
    "epochd.epoch.from": entry.from,
    "epochd.epoch.to": entry.to,
    "epochd.trigger.source": entry.source,
    "epochd.trigger.who": entry.who,
    "epochd.outcome": entry.outcome,
    "epochd.refusal": entry.refusal?.name,
    "epochd.bootstrap.digest": entry.bootstrapDigest,
    "epochd.binary.digest": entry.binaryDigest,
    "epochd.envoy.version.from": entry.fromVersion,
    "epochd.envoy.version.to": entry.envoyVersion,
    "epochd.connections.at_drain": entry.connectionsAtDrain,
    "epochd.connections.at_end": entry.connectionsAtEnd,
  };
  return Object.entries(values).flatMap(([key, value]) => value === undefined ? [] : [attribute(key, value)]);
}

export function attribute(key: string, value: string | number): Attribute {
  return { key, value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value } };
}

function times(fromMs: number, toMs: number): Pick<Span, "startTimeUnixNano" | "endTimeUnixNano"> {
  return { startTimeUnixNano: nanos(fromMs), endTimeUnixNano: nanos(Math.max(fromMs, toMs)) };
}

/** More digits than a number holds exactly. */
function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

function randomHex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
