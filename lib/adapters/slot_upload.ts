// Owns: taking in the bytes of a pushed binary: bounded, whole, with the right digest and signature, or nothing is left of it.
// Must not: run it, or give it a name under which it could be run by others.

import { createHash } from "node:crypto";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Refusal, refusal } from "../core/refusal.ts";
import type { Upload } from "../runtime/binaries.ts";
import { reason } from "./content.ts";
import { type MinisignKey, parseSignature, signatureProblem } from "./minisign.ts";
import { syncDirectory } from "./slot_links.ts";

export interface UploadRules {
  readonly maxBytes: number;
  /** With any, what is not signed by one of them is refused. */
  readonly keys: readonly MinisignKey[];
}

export type Received =
  | { readonly kind: "received"; readonly directory: string; readonly digest: string; readonly signed: boolean }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Of a directory that is not a slot yet. */
export const incomingPrefix = ".incoming-";
/** More is no signature file. */
export const mostSignatureBytes = 4_096;
/** For links, the record, and whoever else writes there. */
const SPARE_BYTES = 1_048_576;

export async function receive(root: string, upload: Upload, rules: UploadRules): Promise<Received> {
  const directory = join(root, `${incomingPrefix}${crypto.randomUUID()}`);
  try {
    const early = signatureTooLarge(upload.signature) ??
      (upload.sizeBytes === undefined
        ? undefined
        : tooLarge(upload.sizeBytes, rules) ?? await noRoom(root, upload.sizeBytes));
    if (early !== undefined) return refused(early);
    await Deno.mkdir(directory, { mode: 0o700 });
    const taken = await take(directory, upload, rules);
    if (taken.kind === "refused") await discard(directory);
    return taken;
  } catch (error) {
    await discard(directory);
    return refused(writeRefusal(directory, error));
  }
}

export async function discard(directory: string): Promise<undefined> {
  await Deno.remove(directory, { recursive: true }).catch(() => {});
}

async function take(directory: string, upload: Upload, rules: UploadRules): Promise<Received> {
  const path = join(directory, "envoy");
  const sha256 = createHash("sha256");
  const blake2b = createHash("blake2b512");
  let bytes = 0;
  {
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    const pieces = upload.pieces[Symbol.asyncIterator]();
    for (;;) {
      const next = await pieces.next().catch((error) => ({ broken: reason(error) }));
      if ("broken" in next) {
        return refused(refusal("upload_broken", `receive the binary: ${next.broken} after ${bytes} bytes`));
      }
      if (next.done) break;
      const piece: Uint8Array = next.value;
      bytes += piece.length;
      const over = tooLarge(bytes, rules);
      if (over !== undefined) return refused(over);
      if (upload.sizeBytes !== undefined && bytes > upload.sizeBytes) break;
      sha256.update(piece);
      blake2b.update(piece);
      for (let sent = 0; sent < piece.length;) sent += await file.write(piece.subarray(sent));
    }
    if (upload.sizeBytes !== undefined && bytes !== upload.sizeBytes) {
      const got = bytes > upload.sizeBytes ? "more" : String(bytes);
      return refused(refusal("size_differs", `receive the binary: ${got} bytes came, expected ${upload.sizeBytes}`));
    }
    if (bytes === 0) return refused(refusal("size_differs", "receive the binary: it is empty"));
    await file.sync();
  }
  const digest = sha256.digest("hex");
  if (upload.sha256 !== undefined && digest !== upload.sha256) {
    const detail = `receive the binary: its sha256 is ${digest}, expected ${upload.sha256}`;
    return refused(refusal("digest_differs", detail));
  }
  const wrong = await checkSignature(upload.signature, rules.keys, {
    blake2b512: blake2b.digest(),
    sizeBytes: bytes,
    whole: () => Deno.readFile(path),
  }, "the pushed binary");
  if (wrong !== undefined) return refused(wrong);
  if (upload.signature !== undefined) await writeWhole(join(directory, "envoy.minisig"), upload.signature);
  // By its descriptor's name alone until now; from here on it may be run, which is asked for next.
  await Deno.chmod(path, 0o755);
  await syncDirectory(directory);
  return { kind: "received", directory, digest, signed: upload.signature !== undefined && rules.keys.length > 0 };
}

/** Without keys nothing is said about a signature: it is kept for whoever has them. */
export async function checkSignature(
  text: string | undefined,
  keys: readonly MinisignKey[],
  signed: Parameters<typeof signatureProblem>[2],
  what: string,
): Promise<Refusal | undefined> {
  if (keys.length === 0) return undefined;
  if (text === undefined) {
    const ids = keys.map(({ id }) => id).join(", ");
    return refusal("signature_missing", `${what} has no signature, binary_public_keys wants one by ${ids}`);
  }
  const signature = parseSignature(text);
  const why = signature === undefined
    ? "is no minisign signature"
    : await signatureProblem(signature, keys, signed).catch((error) => reason(error));
  return why === undefined ? undefined : refusal("signature_invalid", `the signature of ${what} ${why}`);
}

export async function writeWhole(path: string, text: string): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const bytes = new TextEncoder().encode(text);
  for (let sent = 0; sent < bytes.length;) sent += await file.write(bytes.subarray(sent));
  await file.sync();
  await Deno.chmod(path, 0o644);
}

function tooLarge(bytes: number, { maxBytes }: UploadRules): Refusal | undefined {
  if (bytes <= maxBytes) return undefined;
  return refusal("binary_too_large", `the binary has ${bytes} bytes or more, binary_max_bytes allows ${maxBytes}`);
}

/** Else it would be taken in, and refused wherever it is read again. */
function signatureTooLarge(text = ""): Refusal | undefined {
  const { length } = new TextEncoder().encode(text);
  if (length <= mostSignatureBytes) return undefined;
  const expected = `expected a minisign signature of at most ${mostSignatureBytes}`;
  return refusal("signature_invalid", `the signature of the pushed binary has ${length} bytes: ${expected}`);
}

async function noRoom(root: string, bytes: number): Promise<Refusal | undefined> {
  const free = await statfs(root).then(({ bavail, bsize }) => Number(bavail) * Number(bsize), () => undefined);
  if (free === undefined || free >= bytes + SPARE_BYTES) return undefined;
  return refusal("disk_full", `the binary has ${bytes} bytes, ${root} has ${free} free`);
}

/** An errno by its number, since texts differ by locale and runtime. */
export function writeRefusal(path: string, error: unknown): Refusal {
  const text = error instanceof Error ? error.message : String(error);
  const errno = Number(/os error (\d+)/.exec(text)?.[1] ?? 0);
  const isFull = errno === 28 || errno === 122 || errno === 27;
  return refusal(isFull ? "disk_full" : "slots_unwritable", `write ${path}: ${reason(error)}`);
}

function refused(why: Refusal): Received {
  return { kind: "refused", refusal: why };
}
