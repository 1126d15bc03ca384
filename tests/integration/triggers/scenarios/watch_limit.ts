// Owns: a kernel that gives no inotify instance or no watch. Must not: touch the limits of anybody else on this machine.

import assert from "node:assert/strict";
import { openFileCount, threadCount } from "../../../support/procfs.ts";
import type { Scenario } from "../../faults/scenario.ts";
import { behind, canRun, mustRun } from "../program.ts";

/** A user namespace has limits of its own; without one (switched off on some machines) the case can't be made harmlessly. */
const canLimit = await canRun("unshare", "--user", "--map-root-user", "true");

const limits = ["max_inotify_instances", "max_inotify_watches"] as const;

export const scenarios: readonly Scenario[] = !canLimit ? [] : limits.map((limit): Scenario => ({
  line: 11,
  name: `${limit} is used up: falls back to polling and says so, changes are still seen, events come back`,
  async run(stage) {
    const file = `/proc/sys/user/${limit}`;
    const program = behind(
      `exec unshare --user --map-root-user sh -c 'echo 0 > ${file}; exec "$@"' sh "$@"`,
    );
    const scene = await stage.serve({ program, extraArguments: ["--poll", "100ms"] });
    const { pid } = scene.epochd;
    const told = await scene.event("watch_changed", (event) => event.mode === "polling", 0);
    assert.equal(told.level, "warn");
    assert.match((await scene.epochd.command("status", "--json")).stdout, /"mode": ?"polling"/);
    const before = [threadCount(pid), openFileCount(pid)];
    assert.equal(await scene.goodChange(), 1);
    assert.equal(await scene.goodChange(), 2);
    const after = [threadCount(pid), openFileCount(pid)];
    assert.ok(after.every((count, index) => count <= before[index]! + 5), `threads and files ${before} to ${after}`);
    const since = scene.mark();
    await mustRun("nsenter", "--target", String(pid), "--user", "sh", "-c", `echo 1000 > ${file}`);
    await scene.event("watch_changed", (event) => event.mode === "events", since);
    assert.equal(await scene.goodChange(), 3);
    assert.equal(scene.count("watch_changed"), 2, "told once each way");
    return "polling, told; events again";
  },
}));
