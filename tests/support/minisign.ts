// Owns: keys and signatures as minisign makes them, for tests. Must not: be used to verify.

import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { Buffer } from "node:buffer";

export interface Signer {
  readonly publicKey: string;
  /** The text of a `.minisig` file. */
  sign(content: Uint8Array, options?: { readonly legacy?: boolean; readonly comment?: string }): string;
}

export function signer(): Signer {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const id = crypto.getRandomValues(new Uint8Array(8));
  const encode = (...parts: readonly Uint8Array[]) => Buffer.concat(parts).toString("base64");
  const text = (letters: string) => new TextEncoder().encode(letters);
  return {
    publicKey: encode(text("Ed"), id, raw),
    sign(content, { legacy = false, comment = "for a test" } = {}) {
      const over = legacy ? content : createHash("blake2b512").update(content).digest();
      const signature = sign(null, over, privateKey);
      const global = sign(null, Buffer.concat([signature, text(comment)]), privateKey);
      return [
        "untrusted comment: signature from a test",
        encode(text(legacy ? "Ed" : "ED"), id, signature),
        `trusted comment: ${comment}`,
        encode(global),
        "",
      ].join("\n");
    },
  };
}
