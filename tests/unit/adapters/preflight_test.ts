import { deepStrictEqual, match, notStrictEqual, strictEqual } from "node:assert/strict";
import { sha256 } from "../../../lib/adapters/content.ts";
import { BinaryDigests } from "../../../lib/adapters/digests.ts";
import type { EpochFlags } from "../../../lib/adapters/envoy_args.ts";
import { EnvoyChecks } from "../../../lib/adapters/envoy_checks.ts";
import { EnvoyPreflight, type EnvoyPreflightOptions } from "../../../lib/adapters/preflight.ts";
import { Snapshots } from "../../../lib/adapters/snapshots.ts";
import { refusal } from "../../../lib/core/refusal.ts";
import type { PreflightOutcome, PreflightRequest } from "../../../lib/runtime/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { within } from "../../support/until.ts";

const never = new AbortController().signal;
const first: PreflightRequest = { depth: "first", provenKeys: [], joining: false };
const full: PreflightRequest = { depth: "full", provenKeys: [], joining: false, hotRestartVersion: "11.104" };
const BOOTSTRAP = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}\n";
/** Prints its version; validates what has no `bad` in it. */
const ENVOY = `[ "$1" = --hot-restart-version ] && echo 11.104 && exit
grep -q bad "$4" && echo "error initializing configuration 'x': it is bad" >&2 && exit 1
exit 0`;

class Fixture {
  readonly binaries = new BinaryDigests();
  readonly preflight: EnvoyPreflight;
  flags: EpochFlags = { baseId: 7, concurrency: 1, drainTimeMs: 1000, parentShutdownTimeMs: 2000, userArgs: [] };

  constructor(readonly dir: TempDir, options: Partial<EnvoyPreflightOptions> = {}) {
    this.envoy(ENVOY);
    dir.write("envoy.yaml", BOOTSTRAP);
    this.preflight = new EnvoyPreflight({
      envoyPath: dir.at("envoy"),
      bootstrapPath: dir.at("envoy.yaml"),
      flags: () => this.flags,
      binaries: this.binaries,
      snapshots: new Snapshots(dir.at("state")),
      checks: new EnvoyChecks({ versionTimeoutMs: 5000 }),
      ...options,
    });
  }

  /** Replaced as an installer does it. */
  envoy(text: string): void {
    const path = this.dir.write("envoy.new", `#!/bin/sh\necho "$1" >> ${this.dir.at("runs")}\n${text}\n`);
    Deno.chmodSync(path, 0o755);
    Deno.renameSync(path, this.dir.at("envoy"));
  }

  bootstrap(text: string): void {
    this.dir.write("envoy.yaml", text);
  }

  get runs(): string[] {
    try {
      return Deno.readTextFileSync(this.dir.at("runs")).trimEnd().split("\n");
    } catch {
      return [];
    }
  }
}

async function withFixture(
  act: (fixture: Fixture) => Promise<void>,
  options?: Partial<EnvoyPreflightOptions>,
): Promise<void> {
  await using dir = tempDir();
  const fixture = new Fixture(dir, options);
  try {
    await act(fixture);
  } finally {
    fixture.binaries.close();
  }
}

function passed(outcome: PreflightOutcome) {
  if (outcome.kind === "refused") throw new Error(`${outcome.refusal.name}: ${outcome.refusal.detail}`);
  return outcome;
}

function no(outcome: PreflightOutcome) {
  if (outcome.kind === "passed") throw new Error("it passed");
  return outcome;
}

Deno.test("preflight: a plan of what was looked at, run from its snapshot", () =>
  withFixture(async ({ dir, preflight }) => {
    const { plan, cached } = passed(await preflight.run(full, never));
    strictEqual(cached, false);
    deepStrictEqual({ ...plan, key: "", binaryDigest: "" }, {
      key: "",
      bootstrapDigest: sha256(BOOTSTRAP),
      binaryDigest: "",
      bootstrapPath: dir.at("state/bootstrap", `${sha256(BOOTSTRAP)}.yaml`),
      binaryPath: dir.at("envoy"),
      admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
    });
    strictEqual(Deno.readTextFileSync(plan.bootstrapPath), BOOTSTRAP);
  }));

Deno.test("preflight: at depth first nothing is executed", () =>
  withFixture(async (fixture) => {
    passed(await fixture.preflight.run(first, never));
    fixture.bootstrap(`${BOOTSTRAP}bad: true\n`);
    passed(await fixture.preflight.run(first, never));
    deepStrictEqual(fixture.runs, []);
  }));

Deno.test("preflight: in full the version comes first, then validation, each once for the same content", () =>
  withFixture(async (fixture) => {
    passed(await fixture.preflight.run(full, never));
    deepStrictEqual(fixture.runs, ["--hot-restart-version", "--mode"]);
    strictEqual(passed(await fixture.preflight.run(full, never)).cached, true);
    strictEqual(fixture.runs.length, 2);
    fixture.bootstrap(`${BOOTSTRAP}# changed\n`);
    strictEqual(passed(await fixture.preflight.run(full, never)).cached, false);
    deepStrictEqual(fixture.runs.slice(2), ["--mode"]);
  }));

Deno.test("preflight: the key is equal for the same Envoy and no other", () =>
  withFixture(async (fixture) => {
    const key = async () => passed(await fixture.preflight.run(first, never)).plan.key;
    const before = await key();
    strictEqual(await key(), before);
    fixture.bootstrap(`${BOOTSTRAP}# changed\n`);
    notStrictEqual(await key(), before);
    fixture.bootstrap(BOOTSTRAP);
    strictEqual(await key(), before);
    fixture.envoy(`${ENVOY} # other`);
    notStrictEqual(await key(), before);
    fixture.envoy(ENVOY);
    strictEqual(await key(), before);
    fixture.flags = { ...fixture.flags, concurrency: 2 };
    notStrictEqual(await key(), before);
  }));

Deno.test("preflight: a plan that was LIVE is not validated again, unless a file that it names changed", () =>
  withFixture(async (fixture) => {
    const key = fixture.dir.write("key.pem", "secret");
    fixture.bootstrap(`${BOOTSTRAP}named: {filename: ${key}}\n`);
    const { plan } = passed(await fixture.preflight.run(first, never));
    const proven = { ...full, provenKeys: ["x", plan.key] };
    strictEqual(passed(await fixture.preflight.run(proven, never)).cached, true);
    deepStrictEqual(fixture.runs, []);
    Deno.removeSync(key);
    strictEqual(passed(await fixture.preflight.run(proven, never)).cached, false);
    strictEqual(fixture.runs.length, 2);
  }));

Deno.test("preflight: what Envoy refuses is refused with its reason and what was looked at, and not asked again", () =>
  withFixture(async (fixture) => {
    const good = passed(await fixture.preflight.run(first, never)).plan;
    fixture.bootstrap(`${BOOTSTRAP}bad: true\n`);
    for (let i = 0; i < 2; i++) {
      const outcome = no(await fixture.preflight.run(full, never));
      deepStrictEqual(outcome.refusal, { name: "bootstrap_invalid", detail: "it is bad" });
      deepStrictEqual(outcome.looked, {
        bootstrapDigest: sha256(`${BOOTSTRAP}bad: true\n`),
        binaryDigest: good.binaryDigest,
      });
    }
    deepStrictEqual(fixture.runs, ["--hot-restart-version", "--mode"]);
    fixture.bootstrap(BOOTSTRAP);
    strictEqual(passed(await fixture.preflight.run(full, never)).plan.key, good.key);
  }));

Deno.test("preflight: a binary that can't take over is refused before its validation", () =>
  withFixture(async (fixture) => {
    fixture.envoy("echo 12.200");
    const outcome = no(await fixture.preflight.run(full, never));
    strictEqual(outcome.refusal.name, "hot_restart_version_differs");
    match(outcome.refusal.detail, /prints hot restart version 12\.200, the serving epoch has 11\.104/);
    strictEqual(outcome.looked?.bootstrapDigest, sha256(BOOTSTRAP));
    deepStrictEqual(fixture.runs, ["--hot-restart-version"]);
    fixture.envoy("echo oops; exit 1");
    strictEqual(no(await fixture.preflight.run(full, never)).refusal.name, "spawn_failed");
  }));

Deno.test("preflight: a bootstrap or binary that can't be used, each by its own name", () =>
  withFixture(async (fixture) => {
    const { dir, preflight } = fixture;
    const name = async () => {
      const outcome = no(await preflight.run(first, never));
      return `${outcome.refusal.name}${outcome.looked === undefined ? "" : " (looked)"}`;
    };
    fixture.bootstrap("");
    strictEqual(await name(), "bootstrap_invalid");
    fixture.bootstrap("admin: {address");
    strictEqual(await name(), "bootstrap_invalid (looked)");
    fixture.bootstrap("admin: {}");
    strictEqual(await name(), "admin_address_missing (looked)");
    Deno.removeSync(dir.at("envoy.yaml"));
    strictEqual(await name(), "bootstrap_missing");
    Deno.mkdirSync(dir.at("envoy.yaml"));
    strictEqual(await name(), "bootstrap_unreadable");
    Deno.removeSync(dir.at("envoy.yaml"));
    fixture.bootstrap(BOOTSTRAP);
    Deno.chmodSync(dir.at("envoy"), 0o644);
    strictEqual(await name(), "binary_not_executable");
    Deno.writeTextFileSync(dir.at("envoy"), "neither ELF nor script");
    Deno.chmodSync(dir.at("envoy"), 0o755);
    strictEqual(await name(), "binary_wrong_architecture (looked)");
    Deno.removeSync(dir.at("envoy"));
    strictEqual(await name(), "binary_missing");
  }));

Deno.test("preflight: --admin-address wins, and makes up for a bootstrap without one or with a port that Envoy chooses", () =>
  withFixture(async (fixture) => {
    const admin = { kind: "tcp", host: "10.0.0.5", port: 9901 };
    deepStrictEqual(passed(await fixture.preflight.run(first, never)).plan.admin, admin);
    fixture.bootstrap("static_resources: {}\n");
    deepStrictEqual(passed(await fixture.preflight.run(first, never)).plan.admin, admin);
    fixture.bootstrap(BOOTSTRAP.replace("9901", "0"));
    deepStrictEqual(passed(await fixture.preflight.run(first, never)).plan.admin, admin);
  }, { adminAddress: { kind: "tcp", host: "10.0.0.5", port: 9901 } }));

Deno.test("preflight: a bootstrap whose admin is elsewhere than --admin-address is refused: its epoch would be LIVE unseen", () =>
  withFixture(async (fixture) => {
    for (const depth of [first, full]) {
      const { name, detail } = no(await fixture.preflight.run(depth, never)).refusal;
      strictEqual(name, "admin_address_differs");
      match(detail, /has its admin at 127\.0\.0\.1:9901, --admin-address says .*\/run\/admin\.sock: expected the same/);
    }
  }, { adminAddress: { kind: "unix", path: "/run/admin.sock" } }));

Deno.test("preflight: says how to give an admin address", () =>
  withFixture(async (fixture) => {
    fixture.bootstrap("static_resources: {}\n");
    match(
      no(await fixture.preflight.run(first, never)).refusal.detail,
      /envoy\.yaml: it has no admin; give the bootstrap one or use --admin-address$/,
    );
  }));

Deno.test("preflight: a snapshot that can't be written is not held against the content", () =>
  withFixture(async (fixture) => {
    fixture.dir.write("state", "a file in the way");
    const outcome = no(await fixture.preflight.run(full, never));
    strictEqual(outcome.refusal.name, "snapshot_failed");
    strictEqual(outcome.looked, undefined);
  }));

Deno.test("preflight: an obstacle to epoch 0 counts at depth first only", async () => {
  let layout: string | undefined;
  await withFixture(async (fixture) => {
    passed(await fixture.preflight.run(full, never));
    const outcome = no(await fixture.preflight.run(first, never));
    deepStrictEqual(outcome, { kind: "refused", refusal: { name: "base_id_held", detail: "held" } });
    strictEqual(layout, "11.104");
  }, {
    obstacle: async (printedLayout) => {
      layout = await printedLayout();
      return refusal("base_id_held", "held");
    },
  });
});

Deno.test("preflight: an abort ends what it started, within its time", () =>
  withFixture(async (fixture) => {
    fixture.envoy("exec sleep 600");
    const outcome = await within(
      "the end of an aborted preflight",
      fixture.preflight.run(full, AbortSignal.timeout(100)),
      3000,
    );
    strictEqual(no(outcome).refusal.name, "stopping");
    strictEqual(no(outcome).looked, undefined);
  }));

Deno.test("preflight: prune removes the snapshots of other digests", () =>
  withFixture(async (fixture) => {
    const digests: string[] = [];
    for (let i = 0; i < 4; i++) {
      fixture.bootstrap(`${BOOTSTRAP}# ${i}\n`);
      digests.push(passed(await fixture.preflight.run(first, never)).plan.bootstrapDigest);
    }
    await fixture.preflight.prune([digests[0] ?? ""]);
    const left = [...Deno.readDirSync(fixture.dir.at("state/bootstrap"))].map(({ name }) => name.slice(0, 64));
    strictEqual(left.includes(digests[0] ?? ""), true);
    strictEqual(left.includes(digests[1] ?? ""), false);
  }));

Deno.test("preflight: a changed --config-yaml is read although the bootstrap is the same", () =>
  withFixture(async (fixture) => {
    const port = async () => {
      const { admin } = passed(await fixture.preflight.run(first, never)).plan;
      return admin.kind === "tcp" ? admin.port : admin.path;
    };
    strictEqual(await port(), 9901);
    const configYaml = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9902}}}";
    fixture.flags = { ...fixture.flags, userArgs: ["--config-yaml", configYaml] };
    strictEqual(await port(), 9902);
  }));
