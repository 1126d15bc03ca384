// Owns: what is wrong with a configuration, in words for the one who wrote it. Must not: find it.

import type * as z from "zod";
import { nearest } from "./nearest.ts";

/** One thing to mend: where it stands, what stands there, what is expected. */
export interface Problem {
  /** `--drain-time`, or `epochd.yaml: services.envoy.drain_time`. */
  readonly where: string;
  readonly value?: string;
  readonly expected: string;
}

export function problemLine({ where, value, expected }: Problem): string {
  return value === undefined ? `${where}: ${expected}` : `${where} ${value}: ${expected}`;
}

/** Says where the value of a field came from. */
export type Namer = (path: readonly PropertyKey[]) => string;

export interface IssueContext {
  readonly raw: unknown;
  readonly nameOf: Namer;
  /** Known keys of the section at a path. */
  readonly keysAt: (path: readonly PropertyKey[]) => readonly string[];
  /** What a field that must be there is for. */
  readonly purposeOf: (path: readonly PropertyKey[]) => string | undefined;
}

export function toProblems(issues: readonly z.core.$ZodIssue[], context: IssueContext): readonly Problem[] {
  return issues.flatMap((issue): readonly Problem[] => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => {
        const meant = nearest(key, context.keysAt(issue.path));
        return {
          where: context.nameOf([...issue.path, key]),
          expected: `unknown field${meant === undefined ? "" : `, did you mean ${meant}?`}`,
        };
      });
    }
    const value = valueAt(context.raw, issue.path);
    const where = context.nameOf(issue.path);
    if (value === undefined) {
      const purpose = context.purposeOf(issue.path);
      return [{ where, expected: purpose === undefined ? issue.message : `missing (${purpose})` }];
    }
    return [{ where, value: shown(value), expected: issue.message }];
  });
}

/** A value on one line, cut where it is long. */
export function shown(value: unknown): string {
  const text = typeof value === "string"
    ? (/^[^\s"'\p{C}]+$/u.test(value) ? value : JSON.stringify(value))
    : JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Readonly<Record<PropertyKey, unknown>>)[key];
  }
  return value;
}
