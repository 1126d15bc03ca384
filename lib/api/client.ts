// Owns: what a supervisor can be asked, and its answers as values. Must not: print, or know sockets.

import type { ChangeDone } from "../config/change.ts";
import type { WrittenConfig } from "../config/written.ts";
import type { LedgerEntry } from "../observe/ledger.ts";
import type { RecordedFact } from "../observe/record.ts";
import type { BinaryList } from "../runtime/binaries.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { eventReader } from "./event_reader.ts";
import { type Absent, ask, type Incoming, messageOf, type Question } from "./exchange.ts";
import type { Until } from "./outcome.ts";
import type { ProblemDetails } from "./problem_json.ts";

export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "problem"; readonly problem: ProblemDetails }
  /** Nobody answers there; `why` is for people. */
  | { readonly kind: "absent"; readonly why: string };

/** What a drained restart would cut. */
export interface RestartPlan {
  readonly service: string;
  /** Open now; absent where Envoy did not say. */
  readonly connections?: number;
  readonly drainTimeMs?: number;
}

export interface RestartQuestion {
  readonly wait: Until;
  readonly force: boolean;
  readonly drained?: boolean;
}

export interface Restarted {
  readonly service: string;
  readonly request: string;
  readonly outcome: Until;
  readonly from?: number;
  readonly to?: number;
}

export interface PushQuestion {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly sizeBytes?: number;
  readonly sha256?: string;
  readonly signature?: string;
  readonly force: boolean;
  readonly drained: boolean;
}

export interface SwitchAnswer {
  readonly service: string;
  readonly outcome: "unchanged" | Until;
  /** Absent: the installed one. */
  readonly digest?: string;
  readonly version?: string;
  readonly request?: string;
}

export interface EventStream {
  /** Ends when the supervisor ends, or `close` is called. */
  readonly records: AsyncIterable<RecordedFact>;
  close(): void;
}

/** What became of a configuration that was asked for; with `wait`, of its new epochs too. */
export type Changed = Omit<ChangeDone, "kind">;

export interface ChangeQuestion {
  readonly wait: Until;
  readonly dryRun: boolean;
  readonly force: boolean;
  /** Absent: as the configuration says. */
  readonly persist?: boolean;
}

export interface PastConfig {
  readonly kind: "configuration";
  readonly id: number;
  readonly digest: string;
  readonly at: string;
  readonly who: string;
  readonly source: string;
  readonly why: string;
  readonly running: boolean;
}

export interface PastHandoff extends LedgerEntry {
  readonly kind: "handoff";
}

export interface History {
  readonly handoffs: readonly PastHandoff[];
  readonly configurations: readonly PastConfig[];
}

export interface Upgraded {
  readonly executable: string;
  readonly version: string;
  /** Absent with `dryRun`. */
  readonly pid?: number;
}

export interface Client {
  status(options?: { readonly connections: boolean }): Promise<Answer<SupervisorStatus>>;
  restart(service: string, question: RestartQuestion): Promise<Answer<Restarted>>;
  /** Does nothing. */
  planRestart(service: string): Promise<Answer<RestartPlan>>;
  /** Waits for the checks, not for the new epoch. */
  push(service: string, upload: PushQuestion): Promise<Answer<SwitchAnswer>>;
  rollBackBinary(
    service: string,
    options: { readonly to?: string; readonly force: boolean; readonly drained: boolean },
  ): Promise<Answer<SwitchAnswer>>;
  binaries(service: string): Promise<Answer<BinaryList>>;
  config(): Promise<Answer<WrittenConfig>>;
  reload(question: ChangeQuestion): Promise<Answer<Changed>>;
  putConfig(config: unknown, question: ChangeQuestion): Promise<Answer<Changed>>;
  patchConfig(patch: unknown, question: ChangeQuestion): Promise<Answer<Changed>>;
  rollback(to: string | undefined, question: ChangeQuestion): Promise<Answer<Changed>>;
  history(): Promise<Answer<History>>;
  upgrade(executable: string, options: { readonly dryRun: boolean }): Promise<Answer<Upgraded>>;
  /** Resolves once subscribed: nothing that happens from then on is missed. `follow: false` ends after what is held. */
  events(options?: { readonly afterSeq?: number; readonly follow?: boolean }): Promise<Answer<EventStream>>;
}

/** A supervisor answers in milliseconds; one that hangs must not hang its client. */
const defaultAnswerMs = 10_000;

export function connectTo(socket: string, answerMs: number = defaultAnswerMs): Client {
  return {
    status: ({ connections } = { connections: false }) => {
      const target = `/v1/status${connections ? "?connections=true" : ""}`;
      return exchange(socket, { method: "GET", target, boundMs: answerMs });
    },
    restart: (service, { wait, force, drained = false }) => {
      const query = `wait=${wait}&force=${force}${drained ? "&drained=true" : ""}`;
      const target = `/v1/services/${encodeURIComponent(service)}/restart?${query}`;
      return exchange(socket, { method: "POST", target, ...(wait === "accepted" ? { boundMs: answerMs } : {}) });
    },
    planRestart: (service) => {
      const target = `/v1/services/${encodeURIComponent(service)}/restart?dry_run=true`;
      return exchange(socket, { method: "POST", target, boundMs: answerMs });
    },
    push: (service, { pieces, sizeBytes, sha256, signature, force, drained }) => {
      const query = `?force=${force}&drained=${drained}${sha256 === undefined ? "" : `&sha256=${sha256}`}`;
      return exchange(socket, {
        method: "PUT",
        target: `/v1/services/${encodeURIComponent(service)}/binary${query}`,
        headers: {
          "content-type": "application/octet-stream",
          ...(signature === undefined ? {} : { "epochd-signature": base64(signature) }),
        },
        stream: { pieces, ...(sizeBytes === undefined ? {} : { bytes: sizeBytes }) },
        boundMs: changeAnswerMs,
      });
    },
    rollBackBinary: (service, { to, force, drained }) => {
      const query = `?force=${force}&drained=${drained}${to === undefined ? "" : `&to=${encodeURIComponent(to)}`}`;
      const target = `/v1/services/${encodeURIComponent(service)}/binary/rollback${query}`;
      return exchange(socket, { method: "POST", target, boundMs: changeAnswerMs });
    },
    binaries: (service) => {
      const target = `/v1/services/${encodeURIComponent(service)}/binaries`;
      return exchange(socket, { method: "GET", target, boundMs: answerMs });
    },
    config: () => exchange(socket, { method: "GET", target: "/v1/config", boundMs: answerMs }),
    reload: (question) => change(socket, "POST", "/v1/config/reload", question),
    putConfig: (config, question) => change(socket, "PUT", "/v1/config", question, config),
    patchConfig: (patch, question) => change(socket, "PATCH", "/v1/config", question, patch),
    rollback: (to, question) =>
      change(socket, "POST", "/v1/config/rollback", question, to === undefined ? undefined : { to }),
    history: () => exchange(socket, { method: "GET", target: "/v1/history", boundMs: answerMs }),
    upgrade: (executable, { dryRun }) => {
      const target = `/v1/upgrade?dry_run=${dryRun}`;
      return exchange(socket, {
        method: "POST",
        target,
        body: JSON.stringify({ executable }),
        boundMs: changeAnswerMs,
      });
    },
    events: (options = {}) => openEvents(socket, options, answerMs),
  };
}

/** A preflight asks Envoy itself, so a change may take its time. */
const changeAnswerMs = 120_000;

function change(
  socket: string,
  method: "POST" | "PUT" | "PATCH",
  path: string,
  { wait, dryRun, force, persist }: ChangeQuestion,
  body?: unknown,
): Promise<Answer<Changed>> {
  const query = `wait=${wait}&dry_run=${dryRun}&force=${force}${persist === undefined ? "" : `&persist=${persist}`}`;
  return exchange(socket, {
    method,
    target: `${path}?${query}`,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(wait === "accepted" ? { boundMs: changeAnswerMs } : {}),
  });
}

async function exchange<T>(socket: string, question: Question): Promise<Answer<T>> {
  const incoming = await ask(socket, question);
  return "why" in incoming ? absent(incoming) : await readAnswer(socket, incoming);
}

async function readAnswer<T>(socket: string, incoming: Incoming): Promise<Answer<T>> {
  let text = "";
  try {
    for await (const piece of incoming.pieces) text += piece;
    const value: unknown = JSON.parse(text);
    if (incoming.status < 300) return { kind: "ok", value: value as T };
    return { kind: "problem", problem: value as ProblemDetails };
  } catch (error) {
    return { kind: "absent", why: `the answer of the supervisor at ${socket} broke off: ${messageOf(error)}` };
  }
}

async function openEvents(
  socket: string,
  { afterSeq, follow = true }: { readonly afterSeq?: number; readonly follow?: boolean },
  boundMs: number,
): Promise<Answer<EventStream>> {
  const headers: Record<string, string> = afterSeq === undefined ? {} : { "last-event-id": String(afterSeq) };
  const incoming = await ask(socket, {
    method: "GET",
    target: `/v1/events${follow ? "" : "?follow=false"}`,
    headers,
    boundMs,
  });
  if ("why" in incoming) return absent(incoming);
  if (incoming.status !== 200) return await readAnswer(socket, incoming);
  return { kind: "ok", value: { records: recordsOf(incoming), close: () => incoming.close() } };
}

async function* recordsOf(incoming: Incoming): AsyncGenerator<RecordedFact> {
  const read = eventReader();
  try {
    for await (const piece of incoming.pieces) yield* read(piece);
  } catch {
    // The supervisor ended in the middle, or `close` was called: the end of the records says so.
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function absent({ why }: Absent): Answer<never> {
  return { kind: "absent", why };
}
