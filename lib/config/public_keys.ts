// Owns: the check of public keys before anything starts: base64, or a file that holds one. Must not: keep them.

import { parsePublicKey } from "../adapters/minisign.ts";
import { reason } from "../adapters/content.ts";
import { type Problem, shown } from "./problem.ts";

export function checkPublicKeys(values: readonly string[], where: string): readonly Problem[] {
  return values.flatMap((value) => {
    const wrong = parsePublicKey(value) === undefined ? wrongFile(value) : undefined;
    if (wrong === undefined) return [];
    const expected = `${wrong}, expected a minisign public key, as base64 (RW...) or in a file`;
    return [{ where, value: shown(value), expected }];
  });
}

function wrongFile(path: string): string | undefined {
  try {
    return parsePublicKey(Deno.readTextFileSync(path)) === undefined ? "holds no minisign public key" : undefined;
  } catch (error) {
    return reason(error);
  }
}
