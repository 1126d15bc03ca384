// Owns: the drop meter's command line: what it takes, and that bad input gets one message.
import assert from "node:assert/strict";
import { parseCommandLine } from "../../../bench/meter/options.ts";
import { peerCommand, peerProblem } from "../../../bench/meter/peer_command.ts";

const REFUSED: readonly [string, RegExp][] = [
  ["--envoy 1.2.3", /^--envoy 1\.2\.3: expected 1\.38\.3, 1\.39\.3, 1\.40\.0$/],
  ["--handoffs many", /^--handoffs many: expected a whole number from 1 to/],
  ["--handoffs 0", /^--handoffs 0: expected/],
  ["--handoffs=-1", /^--handoffs -1: expected/],
  ["--rate 1e9", /^--rate 1e9: expected/],
  ["--drain 5 --parent-shutdown 5", /^--parent-shutdown 5: expected more than the drain time, 5$/],
  ["--program go", /^--program go: expected dist or source$/],
  ["--nonsense", /^--nonsense: unknown flag/],
  ["--handoffs", /^--handoffs.*: a value is missing/],
  ["--json", /^--json.*: a value is missing/],
  ["--peer-only", /^--peer-only: expected a --peer beside it$/],
  ["reboot", /^reboot: unknown scenario, expected restart, upgrade, roll, stop$/],
];

for (const [line, message] of REFUSED) {
  Deno.test(`epochd-bench ${line} + refused with one line`, () => {
    const asked = parseCommandLine(line.split(" "));
    assert.ok(typeof asked === "object" && "error" in asked, JSON.stringify(asked));
    assert.match(asked.error, message);
    assert.ok(!asked.error.includes("\n"));
  });
}

Deno.test("epochd-bench + a peer with a placeholder that nobody knows is refused, an empty one too", () => {
  assert.equal(peerProblem("restarter {envoy} {config}"), "unknown placeholder {config}");
  assert.equal(peerProblem("  "), "an empty command");
  const asked = parseCommandLine(["--peer", "restarter {config}"]);
  assert.ok(typeof asked === "object" && "error" in asked);
  assert.match(asked.error, /^--peer 'restarter \{config\}': unknown placeholder \{config\}, known are \{envoy\}, /);
});

Deno.test("epochd-bench + scenarios in their own order, defaults for the rest", () => {
  const asked = parseCommandLine(["stop", "restart", "--handoffs", "3", "--drain", "2", "--json", "x.json"]);
  assert.ok(typeof asked === "object" && !("error" in asked));
  assert.deepEqual(asked.scenarios, ["restart", "stop"]);
  assert.deepEqual([asked.handoffs, asked.rolls, asked.drainTimeMs, asked.parentShutdownTimeMs], [3, 5, 2_000, 5_000]);
  assert.equal(asked.json, "x.json");
});

Deno.test("peer command + placeholders are quoted for the shell, and stand in the environment", () => {
  const { line, environment } = peerCommand(
    "run {envoy} -c {bootstrap} --base-id {base_id} {drain_s} {parent_shutdown_s}",
    {
      envoyPath: "/a b/envoy",
      bootstrapPath: "/it's/envoy.yaml",
      baseId: 7,
      drainTimeMs: 2_500,
      parentShutdownTimeMs: 5_000,
    },
  );
  assert.equal(line, `run '/a b/envoy' -c '/it'\\''s/envoy.yaml' --base-id 7 2.5 5`);
  assert.deepEqual(environment, {
    METER_ENVOY: "/a b/envoy",
    METER_BOOTSTRAP: "/it's/envoy.yaml",
    METER_BASE_ID: "7",
    METER_DRAIN_S: "2.5",
    METER_PARENT_SHUTDOWN_S: "5",
  });
});
