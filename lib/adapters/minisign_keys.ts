// Owns: the public keys that settings name, as base64 or as files. Must not: verify anything.

import { reason } from "./content.ts";
import { type MinisignKey, parsePublicKey } from "./minisign.ts";

export type Keys = { readonly kind: "read"; readonly keys: readonly MinisignKey[] } | {
  readonly kind: "unusable";
  readonly problem: string;
};

/** Files are read each time, so that a key may be replaced. One that can't be used makes all unusable: fewer keys are other rules. */
export async function readKeys(values: readonly string[]): Promise<Keys> {
  const keys: MinisignKey[] = [];
  for (const value of values) {
    const inline = parsePublicKey(value);
    if (inline !== undefined) {
      keys.push(inline);
      continue;
    }
    const key = await Deno.readTextFile(value).then(
      (text) => parsePublicKey(text) ?? "it holds no minisign public key",
      (error) => reason(error),
    );
    if (typeof key === "string") return { kind: "unusable", problem: `read the public key ${value}: ${key}` };
    keys.push(key);
  }
  return { kind: "read", keys };
}
