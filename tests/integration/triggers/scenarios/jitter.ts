// Owns: the random delay that spreads a fleet. Must not: wait for a long one to pass.

import assert from "node:assert/strict";
import type { LogEvent } from "../../../support/log_lines.ts";
import type { Scenario } from "../../faults/scenario.ts";

const HOUR_MS = 3_600_000;
const jittered = (event: LogEvent) => event.reason === "jitter";

export const scenarios: readonly Scenario[] = [
  {
    line: 20,
    name:
      "jitter: one edit, three supervisors, three different delays within the range; SIGHUP and the API wait for none",
    async run(stage) {
      const extraArguments = ["--jitter", "1h"];
      const scenes = [];
      for (let node = 0; node < 3; node++) scenes.push(await stage.serve({ extraArguments }));
      const waits: number[] = [];
      for (const scene of scenes) scene.write({ generation: "everywhere" });
      for (const scene of scenes) {
        const waited = await scene.event("trigger_deferred", jittered, 0);
        waits.push(Number(waited.waitMs));
      }
      assert.ok(waits.every((waitMs) => waitMs > 0 && waitMs <= HOUR_MS), waits.join());
      assert.equal(new Set(waits.map((waitMs) => Math.round(waitMs))).size, 3, waits.join());
      assert.ok(scenes.every((scene) => scene.count("handoff_began") === 0));
      const [first, second, third] = scenes;
      await first!.hup();
      const { code, stderr } = await second!.epochd.command("restart", "--wait=live");
      assert.equal(code, 0, stderr);
      for (const scene of [first!, second!]) {
        await scene.event("handoff_done", undefined, 0);
        await scene.unharmed(1);
        assert.equal(scene.count("handoff_began"), 1, "the edit went with it");
      }
      await third!.unharmed(0);
      return "spread over the hour, a person waits for none of it";
    },
  },
  {
    line: 20,
    name: "jitter: the delay passes and the handoff begins by itself, with the newest content",
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--jitter", "2s"] });
      const since = scene.mark();
      scene.write({ generation: "second" });
      await scene.event("content_changed", undefined, since);
      assert.equal(await scene.goodChange(), 1);
      await scene.unharmed(1);
      return "one handoff, after its delay";
    },
  },
  {
    line: 20,
    name: "jitter is off by default, and a SIGHUP or an API request draws none",
    async run(stage) {
      const plain = await stage.serve();
      assert.equal(await plain.goodChange(), 1);
      assert.equal(plain.count("trigger_deferred"), 0);
      const scene = await stage.serve({ extraArguments: ["--jitter", "1h"] });
      await scene.hup();
      await scene.event("handoff_done", undefined, 0);
      const { code, stderr } = await scene.epochd.command("restart", "--wait=drained");
      assert.equal(code, 0, stderr);
      await scene.unharmed(2);
      assert.equal(scene.epochd.log.events.some(jittered), false);
      return "no delay";
    },
  },
];
