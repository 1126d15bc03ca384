// Owns: somebody else who holds a lock file: flock(1), as any program does. Must not: be part of the test's own process, whose locks are one.

import { until } from "../../support/until.ts";

export async function holdLock(path: string): Promise<AsyncDisposable> {
  const ready = `${path}.held`;
  const child = new Deno.Command("flock", { args: [path, "sh", "-c", `: > ${ready}; exec sleep 600`] }).spawn();
  await until(`${path} is held`, () => Deno.statSync(ready).isFile);
  return {
    async [Symbol.asyncDispose]() {
      // flock(1) and what it runs: the lock is let go when both are gone.
      for (const pid of new TextDecoder().decode((await children(child.pid)).stdout).trim().split("\n")) {
        if (pid !== "") Deno.kill(Number(pid), "SIGKILL");
      }
      await child.status;
      Deno.removeSync(ready);
    },
  };
}

function children(pid: number): Promise<Deno.CommandOutput> {
  return new Deno.Command("ps", { args: ["-o", "pid=", "--ppid", String(pid)], stdout: "piped" }).output();
}
