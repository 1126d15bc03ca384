// Owns: reading epochd.yaml into plain values. Must not: know which fields there are.

import type { Problem } from "./problem.ts";

const largestBytes = 1_048_576;

export type FileContent =
  | { readonly kind: "read"; readonly sections: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

export async function readConfigFile(path: string): Promise<FileContent> {
  const text = await readText(path);
  if (typeof text !== "string") return refused("--config", path, text.problem);
  // Loaded only where a file is used: it costs the start of every other supervisor 20 ms and more.
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { prettyErrors: true });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    return { kind: "refused", problems: faults.map((fault) => ({ where: path, expected: firstLine(fault.message) })) };
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return refused("--config", path, firstLine(error instanceof Error ? error.message : String(error)));
  }
  if (value === null || value === undefined) return { kind: "read", sections: {} };
  if (typeof value !== "object" || Array.isArray(value)) {
    return refused("--config", path, "expected the sections services, api and log");
  }
  return { kind: "read", sections: value as Readonly<Record<string, unknown>> };
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

function refused(where: string, value: string, expected: string): FileContent {
  return { kind: "refused", problems: [{ where, value, expected }] };
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.replace(/:$/, "");
}
