// Owns: the kinds of value that fields of the configuration have, as zod schemas with messages for people.
// Must not: know a field's name or default.

import * as z from "zod";
import type { AdminAddress } from "../core/epoch.ts";
import { adminAddressExamples, parseAdminAddress } from "./admin_address.ts";
import { type ClientRole, clientRoleExamples, parseClientRole } from "./client_role.ts";
import { durationExamples, durationPattern, formatDuration, longestMs, parseDurationMs } from "./duration.ts";
import { type ListenAddress, listenAddressExamples, parseListenAddress } from "./listen_address.ts";

declare const milliseconds: unique symbol;
/** A parsed duration: tells the types which fields carry `Ms` in their name. */
export type Milliseconds = number & { readonly [milliseconds]: true };

export interface DurationBounds {
  readonly minMs?: number;
  readonly maxMs?: number;
  /** Why it can't be shorter. */
  readonly minWhy?: string;
  readonly maxWhy?: string;
  /** Envoy's own flags count in seconds. */
  readonly wholeSeconds?: boolean;
}

/** In: `10s`. Out: milliseconds. */
export function duration(bounds: DurationBounds = {}) {
  const { minMs = 0, maxMs = longestMs } = bounds;
  const error = `expected a duration such as ${durationExamples}`;
  const text = z.string().regex(durationPattern, { error });
  return z.union([text, z.literal(0), z.literal("0")], { error }).transform((value, context): Milliseconds => {
    const ms = parseDurationMs(String(value));
    const problem = ms === undefined
      ? `${error} (whole milliseconds, each unit once, larger units first)`
      : ms < minMs
      ? because(`expected at least ${formatDuration(minMs)}`, bounds.minWhy)
      : ms > maxMs
      ? because(`expected at most ${formatDuration(maxMs)}`, bounds.maxWhy)
      : bounds.wholeSeconds && ms % 1000 !== 0
      ? "expected whole seconds, as Envoy counts it"
      : undefined;
    if (problem === undefined) return ms as Milliseconds;
    context.addIssue({ code: "custom", message: problem, input: value });
    return z.NEVER;
  });
}

export function integer(min: number, max: number) {
  const error = `expected a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function oneOf<const T extends readonly string[]>(...choices: T) {
  return z.enum(choices, { error: `expected ${listed(choices)}` });
}

export function flagSwitch() {
  return z.boolean({ error: "expected true or false" });
}

export function path() {
  return z.string({ error: "expected a path" }).min(1, { error: "expected a path, this is empty" }).refine(
    (value) => !value.includes("\0"),
    { error: "expected a path without a NUL character" },
  );
}

export function adminAddress() {
  return parsed<AdminAddress>(parseAdminAddress, `expected ${adminAddressExamples}`);
}

export function listenAddress() {
  return parsed<ListenAddress>(parseListenAddress, `expected ${listenAddressExamples}`);
}

export function clientRole() {
  return parsed<ClientRole>(parseClientRole, `expected ${clientRoleExamples}`);
}

function parsed<T>(parse: (text: string) => T | undefined, error: string) {
  return z.string({ error }).transform((text: string, context): T => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: error, input: text });
    return z.NEVER;
  });
}

export interface CrashBudget {
  readonly restarts: number;
  readonly windowMs: number;
}

/** In: `5 in 10m`. */
export function crashBudget() {
  const error = "expected a number of restarts and a time, such as `5 in 10m`";
  return z.string({ error }).transform((text, context): CrashBudget => {
    const [, restarts, window] = /^(\d{1,4}) in (\S+)$/.exec(text) ?? [];
    const windowMs = window === undefined ? undefined : parseDurationMs(window);
    if (restarts !== undefined && windowMs !== undefined && windowMs > 0 && windowMs <= longestMs) {
      return { restarts: Number(restarts), windowMs };
    }
    context.addIssue({ code: "custom", message: error, input: text });
    return z.NEVER;
  });
}

export type Rollback = { readonly kind: "off" } | { readonly kind: "on_crash"; readonly withinMs: number };

/** In: `off` or `on-crash-within 30s`. */
export function rollback() {
  const error = "expected `off` or `on-crash-within` and a duration, such as `on-crash-within 30s`";
  return z.string({ error }).transform((text, context): Rollback => {
    if (text === "off") return { kind: "off" };
    const [, within] = /^on-crash-within (\S+)$/.exec(text) ?? [];
    const withinMs = within === undefined ? undefined : parseDurationMs(within);
    if (withinMs !== undefined && withinMs > 0 && withinMs <= longestMs) return { kind: "on_crash", withinMs };
    context.addIssue({ code: "custom", message: error, input: text });
    return z.NEVER;
  });
}

export function listed(choices: readonly string[]): string {
  return choices.length < 2 ? choices.join("") : `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
}

function because(expected: string, why: string | undefined): string {
  return why === undefined ? expected : `${expected} (${why})`;
}
