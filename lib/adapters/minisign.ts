// Owns: minisign's public keys and signatures: reading both, and whether a signature is one of a key over a content.
// Must not: read files, or decide what must be signed.

import { createPublicKey, type KeyObject, verify } from "node:crypto";

export interface MinisignKey {
  /** Hex of its eight bytes, as minisign shows it. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface Signature {
  readonly keyId: string;
  /** `whole`: over the content itself (minisign's `Ed`). `digest`: over its BLAKE2b-512 (`ED`). */
  readonly over: "whole" | "digest";
  readonly signature: Uint8Array;
  readonly trustedComment: string;
  readonly globalSignature: Uint8Array;
}

/** What is signed; the whole of it is asked for only where the signature is over that. */
export interface Signed {
  readonly blake2b512: Uint8Array;
  readonly sizeBytes: number;
  readonly whole: () => Promise<Uint8Array>;
}

/** DER of an Ed25519 public key up to its 32 bytes (RFC 8410). */
const spkiPrefix = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const keyBytes = 42;
const signatureBytes = 74;
/** Read whole into memory; running out of it would end epochd, and Envoy with it. */
const mostWholeBytes = 268_435_456;

/** Base64 alone, or a key file's text with its comment; undefined where it is neither. */
export function parsePublicKey(text: string): MinisignKey | undefined {
  const lines = text.trim().split(/\r?\n/);
  const encoded = lines.length === 2 && lines[0]!.startsWith("untrusted comment:") ? lines[1]! : lines[0]!;
  const bytes = lines.length > 2 ? undefined : fromBase64(encoded);
  if (bytes?.length !== keyBytes || latin1(bytes.subarray(0, 2)) !== "Ed") return undefined;
  const der = new Uint8Array([...spkiPrefix, ...bytes.subarray(10)]);
  try {
    // deno-lint-ignore no-explicit-any
    const key = createPublicKey({ key: der as any, format: "der", type: "spki" });
    return { id: keyIdOf(bytes), key };
  } catch {
    return undefined;
  }
}

/** The text of a `.minisig` file; undefined where it is none. */
export function parseSignature(text: string): Signature | undefined {
  const [untrusted = "", encoded = "", trusted = "", global = "", ...rest] = text.replace(/\r?\n$/, "").split(/\r?\n/);
  if (!untrusted.startsWith("untrusted comment:") || !trusted.startsWith("trusted comment: ") || rest.length > 0) {
    return undefined;
  }
  const bytes = fromBase64(encoded);
  const globalSignature = fromBase64(global);
  if (bytes?.length !== signatureBytes || globalSignature?.length !== 64) return undefined;
  const algorithm = latin1(bytes.subarray(0, 2));
  if (algorithm !== "Ed" && algorithm !== "ED") return undefined;
  return {
    keyId: keyIdOf(bytes),
    over: algorithm === "ED" ? "digest" : "whole",
    signature: bytes.subarray(10),
    trustedComment: trusted.slice("trusted comment: ".length),
    globalSignature,
  };
}

/** What is wrong with it, or undefined where one of the keys has signed this content. */
export async function signatureProblem(
  { keyId, over, signature, trustedComment, globalSignature }: Signature,
  keys: readonly MinisignKey[],
  signed: Signed,
): Promise<string | undefined> {
  const known = keys.filter(({ id }) => id === keyId);
  if (known.length === 0) {
    const ids = keys.map(({ id }) => id).join(", ");
    return `is by key ${keyId}, expected one of ${ids}`;
  }
  if (over === "whole" && signed.sizeBytes > mostWholeBytes) {
    return `is over the content itself, which has ${signed.sizeBytes} bytes: expected one over its digest, as minisign makes without -l, for more than ${mostWholeBytes}`;
  }
  const content = over === "digest" ? signed.blake2b512 : await signed.whole();
  const signer = known.find(({ key }) => isBy(key, content, signature));
  if (signer === undefined) return "does not belong to this content";
  // Else the comment, which people read, could be another's.
  const withComment = new Uint8Array([...signature, ...new TextEncoder().encode(trustedComment)]);
  return isBy(signer.key, withComment, globalSignature)
    ? undefined
    : "has a trusted comment that was not signed with it";
}

function isBy(key: KeyObject, content: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verify(null, content, key, signature);
  } catch {
    return false;
  }
}

/** Eight bytes, the last one first. */
function keyIdOf(bytes: Uint8Array): string {
  return [...bytes.subarray(2, 10)].reverse().map((byte) => byte.toString(16).padStart(2, "0")).join("").toUpperCase();
}

/** Strict: what a decoder would skip is no signature of minisign's. */
function fromBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
