// Owns: API keys: what one looks like, its entry in the keys file, and whose it is. Must not: read or write files.
// A key has 256 random bits, so one sha256 is as good as scrypt against whoever reads the file, and costs a request microseconds
// instead of 50 ms and more: a slow hash is for passwords, and would let strangers keep the supervisor busy.

import { Buffer } from "node:buffer";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Role, roles } from "../config/client_role.ts";

export interface KeyEntry {
  readonly id: string;
  readonly role: Role;
  /** sha256 (hex) of the whole key. */
  readonly hash: string;
  /** For people: whose it is. */
  readonly note: string;
}

const prefix = "epochd";
const keyPattern = /^epochd_([a-z0-9][a-z0-9-]{0,31})_([A-Za-z0-9_-]{43})$/;
const idPattern = /^[a-z0-9][a-z0-9-]{0,31}$/;

export function isKeyId(id: string): boolean {
  return idPattern.test(id);
}

/** The key, which is seen this once, and the entry that knows it. */
export function createKey(id: string, role: Role, note: string): { readonly key: string; readonly entry: KeyEntry } {
  const key = `${prefix}_${id}_${randomBytes(32).toString("base64url")}`;
  return { key, entry: { id, role, hash: hashOf(key), note } };
}

/** `ci operate sha256:... deploys of the edge team`. */
export function formatEntry({ id, role, hash, note }: KeyEntry): string {
  return `${id} ${role} sha256:${hash}${note === "" ? "" : ` ${note}`}`;
}

export type ParsedKeys =
  | { readonly kind: "parsed"; readonly entries: readonly KeyEntry[] }
  | { readonly kind: "refused"; readonly problem: string };

/** One entry a line; empty lines and those that begin with # say nothing. */
export function parseKeys(text: string): ParsedKeys {
  const entries: KeyEntry[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, id, role, hash, note] = /^\s*(\S+)\s+(\S+)\s+sha256:([0-9a-f]{64})(?:\s+(.*?))?\s*$/.exec(line) ?? [];
    const known = roles.find((one) => one === role);
    const no = (why: string): ParsedKeys => ({ kind: "refused", problem: `line ${index + 1}: ${why}` });
    if (id === undefined || hash === undefined) return no("expected `ID ROLE sha256:HASH`");
    if (!isKeyId(id)) return no(`${id}: expected an id of at most 32 lower case letters, digits and -`);
    if (known === undefined) return no(`${role}: expected the role ${roles.join(", ")}`);
    if (entries.some((entry) => entry.id === id)) return no(`${id} stands there twice`);
    entries.push({ id, role: known, hash, note: note ?? "" });
  }
  return { kind: "parsed", entries };
}

/** The entry whose key this is. Takes the same time whether the id is known or not. */
export function findKey(entries: readonly KeyEntry[], key: string): KeyEntry | undefined {
  const [, id] = keyPattern.exec(key) ?? [];
  const entry = entries.find((one) => one.id === id);
  const isIt = timingSafeEqual(
    new Uint8Array(Buffer.from(hashOf(key), "hex")),
    new Uint8Array(Buffer.from(entry?.hash ?? "00".repeat(32), "hex")),
  );
  return isIt ? entry : undefined;
}

function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
