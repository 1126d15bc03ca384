// Owns: which listening sockets a process holds. Must not: connect to any, or judge.

import type { AdminAddress } from "../core/epoch.ts";

export interface Listening {
  /** At its admin's address. */
  readonly admin: boolean;
  /** Anywhere else. */
  readonly traffic: boolean;
}

/** Undefined where it can't be known: another user's process, no /proc. */
export async function readListening(
  pid: number,
  admin: AdminAddress,
  procDir = "/proc",
): Promise<Listening | undefined> {
  try {
    // Of the process' own network namespace.
    const net = `${procDir}/${pid}/net`;
    const [tcp, tcp6, udp, udp6, unix] = await Promise.all([
      readListeningRows(`${net}/tcp`),
      readListeningRows(`${net}/tcp6`),
      read(`${net}/udp`),
      read(`${net}/udp6`),
      read(`${net}/unix`),
    ]);
    const sockets = new Map<string, keyof Listening>();
    for (const { inode, port } of [...inet(tcp, LISTEN), ...inet(tcp6, LISTEN)]) {
      sockets.set(inode, admin.kind === "tcp" && port === admin.port ? "admin" : "traffic");
    }
    // QUIC; a resolver's sockets are connected.
    for (const { inode } of [...inet(udp, UNCONNECTED), ...inet(udp6, UNCONNECTED)]) sockets.set(inode, "traffic");
    for (const { inode, path } of listeningUnix(unix)) {
      sockets.set(inode, admin.kind === "unix" && path === admin.path ? "admin" : "traffic");
    }
    return held(`${procDir}/${pid}/fd`, sockets);
  } catch {
    return undefined;
  }
}

async function read(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    // No IPv6 in this kernel.
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

/** The kernel lists listening TCP sockets first, before what may be 100,000 connections, which are not even asked for. */
async function readListeningRows(path: string): Promise<string> {
  try {
    using file = await Deno.open(path);
    const [bytes, decoder] = [new Uint8Array(16_384), new TextDecoder()];
    let text = "";
    for (let count = await file.read(bytes); count !== null; count = await file.read(bytes)) {
      text += decoder.decode(bytes.subarray(0, count), { stream: true });
      const rows = text.split("\n").slice(1, -1);
      if (rows.some((row) => stateOf(row) !== LISTEN)) break;
    }
    return text;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

const LISTEN = "0A";
/** Of a UDP socket that is not connected. */
const UNCONNECTED = "07";

function stateOf(row: string): string | undefined {
  return row.trim().split(/\s+/)[3];
}

function inet(table: string, state: string): { readonly inode: string; readonly port: number }[] {
  return table.split("\n").slice(1).flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    const [, local = "", , seen] = fields;
    const inode = fields[9];
    if (seen !== state || inode === undefined) return [];
    return [{ inode, port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16) }];
  });
}

/** Stream sockets that accept (flag 0x10000). Hot restart's own are datagrams. */
function listeningUnix(table: string): { readonly inode: string; readonly path: string }[] {
  return table.split("\n").flatMap((line) => {
    const [, , , flags, type, , inode, path = ""] = line.trim().split(/\s+/);
    return flags === "00010000" && type === "0001" && inode !== undefined ? [{ inode, path }] : [];
  });
}

function held(fdDir: string, sockets: ReadonlyMap<string, keyof Listening>): Listening {
  const seen: Record<keyof Listening, boolean> = { admin: false, traffic: false };
  const kinds = new Set(sockets.values());
  for (const { name } of Deno.readDirSync(fdDir)) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`${fdDir}/${name}`))?.[1];
    const kind = inode === undefined ? undefined : sockets.get(inode);
    if (kind !== undefined) seen[kind] = true;
    // Listening sockets come early; a process may hold 100,000 others.
    if ([...kinds].every((one) => seen[one])) break;
  }
  return seen;
}

function linkOf(path: string): string {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return "";
  }
}
