// Owns: what holds for a configuration whatever is asked of it, in whatever order: by API, by file, by rollback.
import { parameters } from "./check.ts";
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseConfig } from "../../lib/config/file.ts";
import { diffConfigs, isUnchanged } from "../../lib/config/lifecycle.ts";
import { mergePatch } from "../../lib/config/merge_patch.ts";
import type { Sections } from "../../lib/config/load.ts";
import { configSchema } from "../../lib/config/schema.ts";
import { writtenConfig } from "../../lib/config/written.ts";
import { type ConfigScene, configScene } from "../unit/runtime/config_scene.ts";

const duration = fc.constantFrom("0s", "1s", "4s", "9s", "90s", "soon", null);
const fields = fc.record({
  watchdog: duration,
  drain_time: duration,
  live_timeout: duration,
  retry_limit: fc.constantFrom<unknown>(0, 7, 101, null),
  envoy_args: fc.constantFrom<unknown>([], ["--log-level", "debug"], ["--base-id", "7"], null),
  base_id: fc.constantFrom<unknown>(1, 2, 5),
  on_crash: fc.constantFrom<unknown>("exit", "restart", "no: such # thing", null),
}, { requiredKeys: [] });
const patch = fc.record({
  services: fc.record({ edge: fields, core: fc.oneof(fields, fc.constant(null)) }, { requiredKeys: [] }),
  log: fc.record({ level: fc.constantFrom("debug", "info", "loud", null) }, { requiredKeys: [] }),
}, { requiredKeys: [] });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("patch" as const), patch, persist: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("rollback" as const), back: fc.nat({ max: 4 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("foreign edit" as const), text: fc.constantFrom("# theirs\n", "x: [") }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function act({ configuration, path }: ConfigScene, asked: Step) {
  const options = { who: "unix socket" } as const;
  switch (asked.kind) {
    case "patch":
      return await configuration.edit(
        (document) => ({ kind: "asked", sections: mergePatch(document, asked.patch) as Sections }),
        { ...options, source: "patch", persist: asked.persist },
      );
    case "reload":
      return await configuration.reload({ ...options, source: "reload" });
    case "rollback": {
      const id = (await configuration.history())[asked.back]?.id;
      return await configuration.rollback(id === undefined ? "999" : String(id), { ...options, source: "rollback" });
    }
    case "foreign edit":
      Deno.writeTextFileSync(path, asked.text + Deno.readTextFileSync(path));
      return undefined;
  }
}

Deno.test("a configuration that is asked for is taken whole or not at all, and the file says what it is told to say", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await using scene = await configScene();
      const { configuration, fleet } = scene;
      let isForeign = false;
      for (const asked of steps) {
        const before = { digest: configuration.digest, text: scene.text(), written: configuration.running.written };
        const entries = (await configuration.history()).length;
        fleet.done.length = 0;
        const outcome = await act(scene, asked);
        isForeign = asked.kind === "foreign edit" ||
          (isForeign && !(asked.kind === "reload" && outcome?.kind === "done"));
        if (outcome === undefined) continue;
        const { written } = configuration.running;
        const touched = fleet.done.filter((text) => !text.startsWith("preflight"));
        if (outcome.kind === "refused") {
          assert.equal(configuration.digest, before.digest, "refused, and something changed");
          assert.equal(scene.text(), before.text, "refused, and the file changed");
          assert.deepEqual(touched, [], "refused, and a service was touched");
          continue;
        }
        assert.equal(outcome.digest, configuration.digest);
        const diff = diffConfigs(before.written, written);
        assert.deepEqual(diff.changes.filter(({ lifecycle }) => lifecycle === "static"), []);
        const again = configSchema.parse(written);
        assert.deepEqual(writtenConfig(again), written, "what runs must be a configuration");
        // Of what somebody else wrote meanwhile, nothing is known before it is read.
        if (outcome.persisted && !isForeign) {
          const parsed = parseConfig(scene.text(), "epochd.yaml");
          assert.ok(parsed.kind === "parsed", "the file must be YAML");
          const file = writtenConfig(configSchema.parse(parsed.sections));
          assert.ok(isUnchanged(diffConfigs(file, written)), "persisted, and the file says something else");
        }
        if (scene.text() !== before.text) {
          for (const comment of ["# what runs here", "# faces the world"]) {
            assert.ok(scene.text().includes(comment), comment);
          }
        }
        assert.equal((await configuration.history()).length, entries + (isUnchanged(diff) ? 0 : 1));
        const concerned = new Set([
          ...diff.changes.flatMap(({ service }) => service === undefined ? [] : [service]),
          ...diff.added,
          ...diff.removed,
        ]);
        if (asked.kind === "reload") continue;
        for (const text of touched) assert.ok(concerned.has(text.split(" ")[1]!), `${text}: nothing of it was changed`);
      }
    }),
    parameters(60),
  );
});
