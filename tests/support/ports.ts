// Owns: free TCP ports for tests. Must not listen on any of them longer than the check takes.
//
// Ports come from below the ephemeral range, so that no outgoing connection of a test can hold one by chance. A claim
// file with the pid of its owner keeps test files that run in parallel (isolates of one process, or several processes)
// from choosing the same port between the check and the listen.

const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;
const claimedHere = new Set<number>();

/** A port that nobody listens on and that no other test will be given while this process lives. */
export function freePort(): number {
  for (let attempt = 0; attempt < 2_000; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (claimedHere.has(port) || !canBind(port) || !claim(port)) continue;
    return port;
  }
  throw new Error(`no free TCP port found between ${FIRST_PORT} and ${LAST_PORT} in 2000 attempts`);
}

export function freePorts(count: number): number[] {
  return Array.from({ length: count }, freePort);
}

/** Whether a plain bind works. Not with SO_REUSEPORT: that would succeed beside an Envoy that listens. */
export function canBind(port: number): boolean {
  try {
    Deno.listen({ hostname: "0.0.0.0", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}

function claimDirectory(): string {
  return `${Deno.env.get("TMPDIR") ?? "/tmp"}/epochd-test-ports-${Deno.uid() ?? 0}`;
}

function claim(port: number): boolean {
  const path = `${claimDirectory()}/${port}`;
  Deno.mkdirSync(claimDirectory(), { recursive: true });
  try {
    const owner = Deno.readTextFileSync(path);
    if (owner === "" || isAlive(owner)) return false;
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  try {
    Deno.writeTextFileSync(path, String(Deno.pid), { createNew: true });
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
  if (claimedHere.size === 0) globalThis.addEventListener("unload", releaseClaims);
  claimedHere.add(port);
  return true;
}

function releaseClaims(): void {
  for (const port of claimedHere) {
    try {
      Deno.removeSync(`${claimDirectory()}/${port}`);
    } catch { /* someone cleaned the temporary directory: nothing is left to release */ }
  }
}

function isAlive(pid: string): boolean {
  try {
    Deno.statSync(`/proc/${pid}`);
    return true;
  } catch {
    return false;
  }
}
