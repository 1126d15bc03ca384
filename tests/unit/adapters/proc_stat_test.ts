import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { deadState, parseProcStat, readProcStat } from "../../../lib/adapters/proc_stat.ts";

const tail = "1 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 987654 1 1 1";

Deno.test("parseProcStat: a name with blanks and parentheses", () => {
  deepStrictEqual(parseProcStat(`42 (a) b (c) S ${tail}`), {
    pid: 42,
    name: "a) b (c",
    state: "S",
    parentPid: 1,
    startTicks: 987654,
  });
  strictEqual(parseProcStat(`42 () Z ${tail}`)?.state, "Z");
  strictEqual(parseProcStat(`42 (x) ) R) T ${tail}`)?.state, "T");
});

Deno.test("parseProcStat: half a line is nothing", () => {
  for (const text of ["", "42 (a", "42 (a) S", "x (a) S 1"]) strictEqual(parseProcStat(text), undefined, text);
});

Deno.test("readProcStat: this process, and one that is not", async () => {
  const self = await readProcStat(Deno.pid);
  strictEqual(self?.pid, Deno.pid);
  strictEqual(self?.parentPid, Deno.ppid);
  strictEqual(await readProcStat(2 ** 22 + 1), undefined);
});

Deno.test("readProcStat: sees a stopped child", async () => {
  const child = new Deno.Command("sleep", { args: ["60"] }).spawn();
  try {
    child.kill("SIGSTOP");
    const deadline = performance.now() + 5000;
    let state: string | undefined;
    while (state !== "T" && performance.now() < deadline) state = (await readProcStat(child.pid))?.state;
    strictEqual(state, "T");
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
});

Deno.test("deadState: stopped, zombie and dead can't serve, waiting for a disk can", () => {
  strictEqual(deadState("Z"), "a zombie");
  strictEqual(deadState("T"), "stopped");
  for (const state of ["R", "S", "D", "I"]) strictEqual(deadState(state), undefined, state);
});
