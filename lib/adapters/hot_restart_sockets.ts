// Owns: which of Envoy's hot restart sockets exist, as /proc/net/unix lists them. Must not: connect to them.

export interface HotRestartSocket {
  readonly role: "parent" | "child";
  readonly udp: boolean;
  /** Epoch modulo 3: Envoy reuses names after three epochs. */
  readonly slot: number;
  readonly inode: number;
}

const NAME = /^@envoy_domain_socket_(udp_)?(parent|child)_(\d+)@*$/;

/** The sockets of one base id. Abstract names are padded with zero bytes, which the kernel shows as `@`. */
export function parseHotRestartSockets(procNetUnix: string, baseId: number): HotRestartSocket[] {
  const found: HotRestartSocket[] = [];
  for (const line of procNetUnix.split("\n")) {
    if (!line.includes("@envoy_domain_socket_")) continue;
    const fields = line.trim().split(/\s+/);
    const match = NAME.exec(fields[7] ?? "");
    if (match === null) continue;
    const slot = numberOf(match[3]!) - baseId * 10;
    if (!(slot >= 0 && slot <= 2)) continue;
    found.push({
      role: match[2] === "parent" ? "parent" : "child",
      udp: match[1] !== undefined,
      slot,
      inode: Number(fields[6]),
    });
  }
  return found;
}

/** Envoy has the number in 32 bits with a sign and prints it in 64 without: from 2^31 on the name has another one than the segment. */
function numberOf(digits: string): number {
  const number = BigInt(digits);
  return BigInt.asUintN(64, BigInt.asIntN(32, number)) === number ? Number(BigInt.asUintN(32, number)) : NaN;
}

export async function readHotRestartSockets(baseId: number, procDir = "/proc"): Promise<HotRestartSocket[]> {
  return parseHotRestartSockets(await Deno.readTextFile(`${procDir}/net/unix`), baseId);
}

/** Which processes of this PID namespace hold these sockets; those of other users and namespaces can't be seen. */
export async function holders(sockets: readonly HotRestartSocket[], procDir = "/proc"): Promise<number[]> {
  const wanted = new Set(sockets.map(({ inode }) => `socket:[${inode}]`));
  const pids: number[] = [];
  for await (const { name } of Deno.readDir(procDir)) {
    if (/^\d+$/.test(name) && await holdsOne(`${procDir}/${name}/fd`, wanted)) pids.push(Number(name));
  }
  return pids.sort((a, b) => a - b);
}

async function holdsOne(fdDir: string, wanted: ReadonlySet<string>): Promise<boolean> {
  try {
    for await (const { name } of Deno.readDir(fdDir)) {
      const target = await Deno.readLink(`${fdDir}/${name}`).catch(() => "");
      if (wanted.has(target)) return true;
    }
  } catch {
    // It ended, or belongs to another user.
  }
  return false;
}
