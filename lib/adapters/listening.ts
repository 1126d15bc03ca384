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
    const tables = await Promise.all(["tcp", "tcp6", "udp", "udp6", "unix"].map((name) => read(`${net}/${name}`)));
    const [tcp = "", tcp6 = "", udp = "", udp6 = "", unix = ""] = tables;
    const sockets = new Map<string, keyof Listening>();
    for (const { inode, port } of [...inet(tcp, "0A"), ...inet(tcp6, "0A")]) {
      sockets.set(inode, admin.kind === "tcp" && port === admin.port ? "admin" : "traffic");
    }
    // QUIC; a resolver's sockets are connected.
    for (const { inode } of [...inet(udp, "07"), ...inet(udp6, "07")]) sockets.set(inode, "traffic");
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

function inet(table: string, state: string): { readonly inode: string; readonly port: number }[] {
  const found = [];
  for (const line of table.split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [, local = "", , st, , , , , , inode] = fields;
    if (inode === undefined) continue;
    // The kernel lists listening TCP sockets first, before what may be 100,000 connections.
    if (st !== state && state === "0A") break;
    if (st === state) found.push({ inode, port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16) });
  }
  return found;
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
