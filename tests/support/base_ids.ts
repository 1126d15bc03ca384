// Owns: Envoy base ids for tests and what an Envoy leaves behind under one (segment, abstract sockets).
// Must not signal any process.

const FIRST_BASE_ID = 1_000_000;
// Envoy works with base_id * 10 + epoch % 3 in 32 bits.
const LAST_BASE_ID = 200_000_000;
const LAST_LARGE_BASE_ID = 429_496_728;
const handedOut = new Set<number>();

/** A random base id without a trace of any Envoy. Its segment is removed when this test file ends. */
export function freeBaseId(): number {
  return free(FIRST_BASE_ID, LAST_BASE_ID);
}

/** One whose sockets have numbers from 2^31 on, which Envoy names otherwise. */
export function freeLargeBaseId(): number {
  return free(2 ** 31 / 10 + 1, LAST_LARGE_BASE_ID);
}

/** The number in the names of its sockets: Envoy extends the sign of 32 bits to 64. */
export function socketNumber(baseId: number, slot: number): bigint {
  return BigInt.asUintN(64, BigInt.asIntN(32, BigInt(baseId * 10 + slot)));
}

function free(first: number, last: number): number {
  while (true) {
    const baseId = Math.floor(first + Math.random() * (last - first));
    if (handedOut.has(baseId) || hasSegment(baseId) || domainSockets(baseId).length > 0) continue;
    if (handedOut.size === 0) globalThis.addEventListener("unload", () => handedOut.forEach(removeSegment));
    handedOut.add(baseId);
    return baseId;
  }
}

export function segmentPath(baseId: number): string {
  return `/dev/shm/envoy_shared_memory_${baseId * 10}`;
}

export function hasSegment(baseId: number): boolean {
  try {
    Deno.statSync(segmentPath(baseId));
    return true;
  } catch {
    return false;
  }
}

export function removeSegment(baseId: number): void {
  try {
    Deno.removeSync(segmentPath(baseId));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Names of the abstract sockets of this base id, without the NULs that pad them, e.g. `envoy_domain_socket_parent_70`. */
export function domainSockets(baseId: number): string[] {
  const own = /@(envoy_domain_socket_(?:udp_)?(?:parent|child)_(\d+))/;
  const slots = new Set([0, 1, 2].map((slot) => String(socketNumber(baseId, slot))));
  // Once each: connections that a fake Envoy has accepted carry the name too.
  const names = new Set<string>();
  for (const line of Deno.readTextFileSync("/proc/net/unix").split("\n")) {
    const match = own.exec(line);
    if (match?.[1] !== undefined && slots.has(match[2]!)) names.add(match[1]);
  }
  return [...names].sort();
}

/** The flags word of the shared segment; bit 0 is Envoy's INITIALIZING. */
export function segmentFlags(baseId: number): bigint {
  const bytes = Deno.readFileSync(segmentPath(baseId));
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(96, true);
}
