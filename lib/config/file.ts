// Owns: reading epochd.yaml into plain values. Must not: know which fields there are, or be loaded where no file is used.

import { parseDocument } from "yaml";
import { sha256 } from "../adapters/content.ts";
import type { Problem } from "./problem.ts";

const largestBytes = 1_048_576;

export type FileContent =
  | {
    readonly kind: "read";
    readonly sections: Readonly<Record<string, unknown>>;
    readonly text: string;
    /** Of the text: equal digests are equal files. */
    readonly digest: string;
  }
  | { readonly kind: "refused"; readonly problems: readonly Problem[]; readonly digest?: string };

export async function readConfigFile(path: string): Promise<FileContent> {
  const text = await readText(path);
  if (typeof text !== "string") return refused("--config", path, text.problem);
  const digest = sha256(text);
  const parsed = parseConfig(text, path);
  return parsed.kind === "parsed"
    ? { kind: "read", sections: parsed.sections, text, digest }
    : { kind: "refused", problems: parsed.problems, digest };
}

export type ParsedConfig =
  | { readonly kind: "parsed"; readonly sections: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

export function parseConfig(text: string, path: string): ParsedConfig {
  const document = parseDocument(text, { prettyErrors: true });
  const faults = [...document.errors, ...document.warnings];
  // Those that follow mostly follow from the first.
  const [fault] = faults;
  if (fault !== undefined) {
    const more = faults.length === 1 ? "" : ` (the first of ${faults.length} faults)`;
    return { kind: "refused", problems: [{ where: path, expected: `${faultText(fault.message)}${more}` }] };
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return refused("--config", path, firstLine(error instanceof Error ? error.message : String(error)));
  }
  if (value === null || value === undefined) return { kind: "parsed", sections: {} };
  if (typeof value !== "object" || Array.isArray(value)) {
    return refused("--config", path, "expected the sections services, api and log");
  }
  return { kind: "parsed", sections: value as Readonly<Record<string, unknown>> };
}

async function readText(path: string): Promise<string | { readonly problem: string }> {
  try {
    const info = await Deno.stat(path);
    if (info.isDirectory) return { problem: "is a directory, expected a file" };
    if (info.size > largestBytes) return { problem: `is larger than ${largestBytes} bytes` };
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { problem: "does not exist" };
    if (error instanceof Deno.errors.PermissionDenied) return { problem: "may not be read (permission denied)" };
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function refused(
  where: string,
  value: string,
  expected: string,
): { readonly kind: "refused"; readonly problems: readonly Problem[] } {
  return { kind: "refused", problems: [{ where, value, expected }] };
}

/** The parser descends by recursion, and says so. */
function faultText(message: string): string {
  const text = firstLine(message);
  const at = /( at line \d+.*)?$/.exec(text)?.[0] ?? "";
  return /call stack|stack overflow/i.test(text) ? `is nested too deep${at}` : text;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.replace(/:$/, "");
}
