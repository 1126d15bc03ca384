// Owns: looking at processes and admins from outside, the same way for a bare Envoy and for one under epochd.
// Must not: disturb more than a look costs.

/**
 * Performance time at which the admin answered LIVE at this epoch. Asked every few milliseconds on fresh connections; only the
 * head of the answer is read, since the rest (125 kB) says nothing more.
 */
export async function liveAtMs(port: number, epoch: number, timeoutMs = 30_000): Promise<number> {
  const deadlineMs = performance.now() + timeoutMs;
  while (performance.now() < deadlineMs) {
    if (await isLive(port, epoch)) return performance.now();
    await pause(3);
  }
  throw new Error(`epoch ${epoch} was not LIVE within ${timeoutMs} ms`);
}

const REQUEST = new TextEncoder().encode("GET /server_info HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");

async function isLive(port: number, epoch: number): Promise<boolean> {
  let text = "";
  try {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port });
    await conn.write(REQUEST);
    const decoder = new TextDecoder();
    const bytes = new Uint8Array(16_384);
    while (!/"restart_epoch": \d+/.test(text)) {
      const count = await conn.read(bytes);
      if (count === null) break;
      text += decoder.decode(bytes.subarray(0, count), { stream: true });
    }
  } catch {
    return false;
  }
  return /"state": "LIVE"/.test(text) && Number(/"restart_epoch": (\d+)/.exec(text)?.[1]) === epoch;
}

/** Performance time at which a child of this process executes this file: after exec, not after fork. */
export async function execAtMs(parentPid: number, path: string, timeoutMs = 30_000): Promise<number> {
  const deadlineMs = performance.now() + timeoutMs;
  const real = Deno.realPathSync(path);
  while (performance.now() < deadlineMs) {
    for (const pid of childPids(parentPid)) if (exeOf(pid) === real) return performance.now();
    await pause(1);
  }
  throw new Error(`no child of ${parentPid} executed ${path} within ${timeoutMs} ms`);
}

export function childPids(pid: number): number[] {
  try {
    const threads = [...Deno.readDirSync(`/proc/${pid}/task`)].map(({ name }) => name);
    const lists = threads.map((thread) => Deno.readTextFileSync(`/proc/${pid}/task/${thread}/children`));
    return lists.flatMap((list) => list.split(" ").filter((item) => item !== "").map(Number));
  } catch {
    return [];
  }
}

function exeOf(pid: number): string | undefined {
  try {
    return Deno.readLinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}

/** Time on a CPU of all living threads, by the scheduler's own nanoseconds. */
export function cpuMs(pid: number): number {
  let ns = 0;
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    ns += Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]);
  }
  return ns / 1e6;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
