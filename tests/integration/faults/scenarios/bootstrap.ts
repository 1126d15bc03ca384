// Owns: line 1 of issue 4: bootstraps that preflight must refuse. Must not: hold those that pass and then fail to run.

import assert from "node:assert/strict";
import type { BootstrapOptions } from "../../../support/bootstrap.ts";
import { envoyPath } from "../../../support/envoys.ts";
import { freePort } from "../../../support/ports.ts";
import { countingEnvoy } from "../counting_envoy.ts";
import type { Scene } from "../scene.ts";
import type { Scenario } from "../scenario.ts";

interface Bad {
  readonly what: string;
  readonly text: (scene: Scene) => string;
  readonly refusal: string;
  /** What the reason must name, so that a person finds it. */
  readonly says: RegExp;
}

function changed(scene: Scene, change: NonNullable<BootstrapOptions["change"]>): string {
  return scene.text({ change });
}

const BAD: readonly Bad[] = [
  {
    what: "a YAML error",
    text: (scene) => `${scene.text()}\n  nope: [\n`,
    refusal: "bootstrap_invalid",
    says: /not YAML/,
  },
  {
    what: "an unknown field",
    text: (scene) => `${scene.text()}\nno_such_field: 1\n`,
    refusal: "bootstrap_invalid",
    says: /no_such_field/,
  },
  {
    what: "a field of the wrong type",
    text: (scene) =>
      changed(scene, (it) => it.static_resources.listeners[0].address.socket_address.port_value = "soon"),
    refusal: "bootstrap_invalid",
    says: /port_value|soon/,
  },
  {
    what: "a value out of range",
    text: (scene) =>
      changed(scene, (it) => it.static_resources.listeners[0].address.socket_address.port_value = 70_000),
    refusal: "bootstrap_invalid",
    says: /port_?value/i,
  },
  {
    what: "a route to a cluster that is not there",
    text: (scene) => changed(scene, (it) => it.static_resources.clusters.shift()),
    refusal: "bootstrap_invalid",
    says: /unknown cluster 'upstream'/,
  },
  {
    what: "a certificate file that is not there",
    text: (scene) =>
      scene.text({
        tls: {
          port: freePort(),
          certificatePath: scene.directory.at("no.crt"),
          privateKeyPath: scene.directory.at("no.key"),
        },
      }),
    refusal: "bootstrap_invalid",
    says: /no\.(crt|key)/,
  },
  {
    what: "a secret (SDS) file that is not there",
    text: (scene) => scene.text({ tlsSecret: { port: freePort(), sdsPath: scene.directory.at("no-sds.yaml") } }),
    refusal: "bootstrap_invalid",
    says: /no-sds\.yaml/,
  },
  {
    what: "a body file that is not there",
    text: (scene) => scene.text({ bodyPath: scene.directory.at("no.txt") }),
    refusal: "bootstrap_invalid",
    says: /no\.txt/,
  },
  {
    what: "no admin",
    text: (scene) => changed(scene, (it) => delete it.admin),
    refusal: "admin_address_missing",
    says: /no admin.*--admin-address/,
  },
  {
    what: "a list in place of a map",
    text: () => "- a\n- b\n",
    refusal: "bootstrap_invalid",
    says: /not a YAML map/,
  },
  {
    what: "bytes that are no text",
    text: () => "\u0000\u0001\u0002\u0003",
    refusal: "bootstrap_invalid",
    says: /not YAML|not a YAML map/,
  },
];

const refusals: readonly Scenario[] = BAD.map(({ what, text, refusal, says }) => ({
  line: 1,
  name: `bootstrap with ${what}: ${refusal}, nothing is forked, restoring it restarts nothing`,
  async run(stage) {
    const scene = await stage.serve();
    const good = scene.text();
    const since = scene.mark();
    scene.writeText(text(scene));
    const failed = await scene.event("handoff_failed", undefined, since);
    assert.equal(failed.refusal, refusal);
    assert.match(String(failed.detail), says);
    assert.doesNotMatch(String(failed.detail), /\n/);
    const { refused } = await scene.unharmed(0);
    assert.equal(refused[0]?.refusal.name, refusal);
    const restored = scene.mark();
    scene.writeText(good);
    await scene.event("content_changed", undefined, restored);
    const next = await scene.hup();
    // Handoffs are numbered: there was none between the refused one and the one by SIGHUP.
    assert.deepEqual([failed.handoff, next.handoff], [1, 2]);
    assert.equal(scene.count("epoch_spawned"), 2);
    return "refused in preflight, epoch 0 serves on";
  },
}));

export const scenarios: readonly Scenario[] = [...refusals, {
  line: 1,
  name: "the same bad bootstrap again and again: validated once, never forked, and told to whoever asks",
  async run(stage) {
    const counted = countingEnvoy(stage, envoyPath());
    const scene = await stage.serve({ envoyPath: counted.path });
    const bad = `${scene.text()}\nno_such_field: 1\n`;
    const good = scene.text();
    for (let round = 0; round < 3; round++) {
      const since = scene.mark();
      scene.writeText(bad);
      await scene.event("handoff_failed", undefined, since);
      const restored = scene.mark();
      scene.writeText(good);
      await scene.event("content_changed", undefined, restored);
    }
    assert.equal(counted.validations(), 1);
    scene.writeText(bad);
    const { code, stderr } = await scene.epochd.command("restart", "--wait");
    assert.equal(code, 1);
    assert.match(stderr, /bootstrap_invalid.*no_such_field/);
    const json = await scene.epochd.command("restart", "--wait", "--json");
    assert.equal(json.code, 1);
    assert.equal(JSON.parse(json.stdout).refusal, "bootstrap_invalid");
    assert.equal(counted.validations(), 1);
    assert.equal(counted.starts(), 1);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return "one validation for six tries, exit code 1 and the reason for `restart --wait`";
  },
}, {
  line: 1,
  name: "bootstrap emptied, removed, unreadable by form: no handoff, told, back by itself",
  async run(stage) {
    const scene = await stage.serve();
    const good = scene.text();
    for (
      const [act, says] of [
        [() => scene.writeText(""), /empty/],
        [() => Deno.removeSync(scene.bootstrapPath), /no such file/],
        [() => Deno.mkdirSync(scene.bootstrapPath), /directory/],
      ] as const
    ) {
      const since = scene.mark();
      act();
      const told = await scene.event("content_unusable", ({ problem }) => says.test(String(problem)), since);
      assert.equal(told.subject, "bootstrap");
    }
    const asked = await scene.epochd.command("restart", "--wait");
    assert.equal(asked.code, 1);
    assert.match(asked.stderr, /bootstrap_unreadable.*directory/);
    await scene.unharmed(0);
    const since = scene.mark();
    Deno.removeSync(scene.bootstrapPath);
    scene.writeText(good);
    await scene.event("content_back", undefined, since);
    assert.equal(scene.count("epoch_spawned"), 1);
    assert.equal(await scene.goodChange(), 1);
    return "no handoff, epoch 0 serves on, the returned content restarts nothing";
  },
}, {
  line: 1,
  name: "secret file that comes after the refusal: the same bootstrap goes through when asked for",
  async run(stage) {
    const scene = await stage.serve();
    const bodyPath = scene.directory.at("late.txt");
    const since = scene.mark();
    scene.write({ bodyPath });
    await scene.event("handoff_failed", undefined, since);
    Deno.writeTextFileSync(bodyPath, "now it is there\n");
    const live = await scene.hup();
    assert.equal(live.to, 1);
    await scene.unharmed(1);
    return "refused, then epoch 1 without a change of the bootstrap";
  },
}, {
  line: 1,
  name: "bootstrap with two listeners of one name: Envoy keeps the first and no request fails",
  async run(stage) {
    const scene = await stage.serve();
    const epoch = await scene.goodChange({
      change: (it) => {
        const copy = structuredClone(it.static_resources.listeners[0]);
        copy.address.socket_address.port_value = freePort();
        it.static_resources.listeners.push(copy);
      },
    });
    // Neither validation nor a start minds (1.38.3 to 1.40.0), so there is nothing that epochd could refuse.
    assert.equal(epoch, 1);
    await scene.unharmed(1);
    return "a handoff like any other: the second listener is ignored by Envoy";
  },
}];
