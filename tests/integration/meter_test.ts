// Owns: that the drop meter sees a drop when there is one and none when there is none: real Envoys under epochd, under a supervisor
// that only kills and starts anew, and under ones that its own command line starts.
import assert from "node:assert/strict";
import { http3Obstacle } from "../../bench/meter/clients/http3.ts";
import { loadTool, startLoad } from "../../bench/meter/load.ts";
import { meterMarkdown, plotOf } from "../../bench/meter/markdown.ts";
import type { Row, ScenarioReport } from "../../bench/meter/meter_report.ts";
import type { MeterOptions } from "../../bench/meter/options.ts";
import { type Protocol, PROTOCOL_NAMES } from "../../bench/meter/protocols.ts";
import { meterFigures } from "../../bench/meter/run.ts";
import { epochdCommand } from "../support/epochd.ts";
import { freePort } from "../support/ports.ts";
import { isAlive } from "../support/procfs.ts";
import { tempDir } from "../support/tempdir.ts";
import { startUpstream } from "../support/upstream.ts";
import { until } from "../support/until.ts";

const QUICK: Partial<MeterOptions> = {
  scenarios: ["restart"],
  handoffs: 2,
  rolls: 2,
  requestsPerSecond: 300,
  drainTimeMs: 2_000,
  parentShutdownTimeMs: 4_000,
  program: "source",
};
const quiet = () => {};
const main = decodeURIComponent(new URL("../../bench/meter/main.ts", import.meta.url).pathname);
const held = PROTOCOL_NAMES.filter((name) => name !== "h3" || http3Obstacle() === undefined);

function rowOf(report: ScenarioReport, protocol: Protocol | "load"): Row {
  const row = report.rows.find((row) => row.protocol === protocol);
  assert.ok(row !== undefined, `no row ${protocol}`);
  return row;
}

/** A supervisor that starts Envoy anew on SIGHUP, after it has done to the old one what `onHup` says. */
function supervisorScript(onHup: string): string {
  return `#!/bin/bash
start() {
  "$METER_ENVOY" -c "$METER_BOOTSTRAP" --base-id "$METER_BASE_ID" --restart-epoch 0 \\
    --drain-time-s "$METER_DRAIN_S" --parent-shutdown-time-s "$METER_PARENT_SHUTDOWN_S" 2>/dev/null &
  child=$!
}
again() { ${onHup}; start; }
trap again HUP
trap 'kill $child; exit 0' TERM INT
start
while :; do wait $child; sleep 0.05; done
`;
}

function peerOf(script: string): Partial<MeterOptions> {
  return { peer: `bash ${script}`, peerOnly: true };
}

/** Away for longer than any held client waits before its next question. */
const KILLS = "kill -9 $child; wait $child 2>/dev/null; sleep 0.6";
const example = decodeURIComponent(new URL("../../bench/meter/peer_example.sh", import.meta.url).pathname);

Deno.test("drop meter + clean handoffs of epochd: no drop of any protocol, told to go and cuts at parent-shutdown apart", async () => {
  const report = await meterFigures(QUICK, quiet);
  const [restart] = report.scenarios;
  assert.ok(restart !== undefined && report.scenarios.length === 1);
  assert.equal(restart.problem, undefined);
  assert.deepEqual(restart.marks.map(({ kind }) => kind), ["handoff", "handoff"]);
  assert.deepEqual([restart.drops, restart.losses.filter(({ limit }) => limit === undefined)], [0, []]);
  for (const protocol of [...held, "load"] as const) {
    const { sent, answered, limits } = rowOf(restart, protocol);
    const own = Object.values(limits).reduce((sum, count) => sum + count, 0);
    assert.ok(answered > 0, `${protocol} was never answered`);
    assert.equal(sent, answered + own, `${protocol}: sent ${sent}, answered ${answered}, Envoy's own ${own}`);
  }
  for (const protocol of ["h1-keep-alive", "h2", "tls", "load"] as const) {
    assert.ok(rowOf(restart, protocol).toldToGo > 0, `${protocol} was never told to go`);
  }
  for (const protocol of held.filter((name) => name !== "h1-new")) {
    assert.ok(rowOf(restart, protocol).heldAcross > 0, `no connection of ${protocol} was held across a handoff`);
  }
  assert.ok(rowOf(restart, "tcp-for-ever").limits.parent_shutdown! > 0, "what is held for ever is cut with its parent");
  assert.match(meterMarkdown(report), /in-place restarts \(SIGHUP\)/);
  assert.doesNotMatch(plotOf(restart), /NaN|undefined/);
});

Deno.test("drop meter + a supervisor that kills Envoy and starts it anew: drops of every protocol", async () => {
  await using directory = tempDir();
  const script = directory.write("kills.sh", supervisorScript(KILLS));
  const report = await meterFigures({ ...QUICK, ...peerOf(script) }, quiet);
  const peer = report.scenarios.find(({ key }) => key === "peer");
  assert.ok(peer !== undefined);
  assert.deepEqual(peer.marks.map(({ kind }) => kind), ["replaced", "replaced"]);
  for (const protocol of ["websocket", "download", "upload", "grpc", "tcp", "tcp-for-ever"] as const) {
    assert.ok(rowOf(peer, protocol).drops.reset! > 0, `${protocol}: ${JSON.stringify(rowOf(peer, protocol))}`);
  }
  for (const protocol of held.filter((name) => name !== "udp" && name !== "h3")) {
    assert.ok(rowOf(peer, protocol).drops.refused! > 0, `${protocol}: ${JSON.stringify(rowOf(peer, protocol))}`);
  }
  // Nobody resets a datagram: what is lost is not answered.
  for (const protocol of held.filter((name) => name === "udp" || name === "h3")) {
    const { drops } = rowOf(peer, protocol);
    assert.ok(
      (drops.unanswered ?? 0) + (drops.reset ?? 0) > 0,
      `${protocol}: ${JSON.stringify(rowOf(peer, protocol))}`,
    );
  }
  assert.ok(rowOf(peer, "load").drops.reset! > 0);
  assert.deepEqual(peer.rows.map(({ limits }) => limits).filter((limits) => Object.keys(limits).length > 0), []);
  assert.ok(peer.dropsAtMs.length > 0);
  assert.match(meterMarkdown(report), /2 times the old Envoy was gone before the new one was LIVE/);
});

Deno.test("drop meter + a small supervisor that starts the next epoch on SIGHUP: handoffs without a drop", async () => {
  const peer = `bash ${example} {envoy} {bootstrap} {base_id} {drain_s} {parent_shutdown_s}`;
  const options = { ...QUICK, peer, peerOnly: true, handoffs: 1 };
  const [seen] = (await meterFigures(options, quiet)).scenarios;
  assert.deepEqual(seen?.marks.map(({ kind }) => kind), ["handoff"]);
  assert.deepEqual([seen?.drops, seen?.losses.filter(({ limit }) => limit === undefined)], [0, []]);
});

Deno.test("drop meter + epochd as its own peer, by a command line with placeholders: upgrade and stop without a drop", async () => {
  await using directory = tempDir();
  const flags = {
    "--envoy-path": "{envoy}",
    "--envoy-config": "{bootstrap}",
    "--base-id": "{base_id}",
    "--drain-time": "{drain_s}s",
    "--parent-shutdown-time": "{parent_shutdown_s}s",
    "--state-dir": directory.at("state"),
    "--api-socket": directory.at("api.sock"),
  };
  const peer = [...epochdCommand("source"), "run", ...Object.entries(flags).flat()].join(" ");
  const { scenarios } = await meterFigures({ ...QUICK, scenarios: ["upgrade", "stop"], peer }, quiet);
  assert.deepEqual(scenarios.map(({ scenario, key }) => `${scenario} ${key}`), [
    "upgrade epochd",
    "upgrade peer",
    "stop epochd",
    "stop peer",
  ]);
  for (const one of scenarios) {
    assert.deepEqual(
      [one.drops, one.losses.filter(({ limit }) => limit === undefined)],
      [0, []],
      `${one.scenario} ${one.key}`,
    );
  }
  for (const one of scenarios.slice(0, 2)) {
    assert.deepEqual(one.marks.map(({ from, to }) => `${from} ${to}`), [
      "1.38.3 1.39.3",
      "1.39.3 1.40.0",
      "1.40.0 1.39.3",
      "1.39.3 1.38.3",
    ]);
    const dark = one.ownLimits.map(({ from, counts }) => [from, (counts.udp_dark ?? 0) > 0]);
    assert.deepEqual(dark, [["1.38.3", true], ["1.39.3", true], ["1.40.0", false], ["1.39.3", true]]);
  }
});

Deno.test("drop meter + rolls from supervisor to supervisor: no drop", async () => {
  const [roll] = (await meterFigures({ ...QUICK, scenarios: ["roll"] }, quiet)).scenarios;
  assert.deepEqual(roll?.marks.map(({ kind }) => kind), ["handoff", "handoff"]);
  assert.deepEqual([roll?.drops, roll?.losses.filter(({ limit }) => limit === undefined)], [0, []]);
});

Deno.test("drop meter + a supervisor that ends instead of restarting: what was seen is reported, with the reason", async () => {
  await using directory = tempDir();
  const script = directory.write("ends.sh", supervisorScript("echo no more; kill $child; exit 3"));
  const report = await meterFigures({ ...QUICK, ...peerOf(script) }, quiet);
  const peer = report.scenarios.find(({ key }) => key === "peer");
  assert.match(peer?.problem ?? "", /^no new Envoy after trigger 1: exit code 3\n.*no more/s);
  assert.deepEqual(peer?.marks.map(({ kind }) => kind), ["failed"]);
  assert.ok(peer!.drops > 0);
  assert.match(meterMarkdown(report), /\*\*Ended early\*\*: no new Envoy after trigger 1/);
});

Deno.test("drop meter + a peer that never starts an Envoy is one message", async () => {
  await assert.rejects(
    meterFigures({ ...QUICK, scenarios: ["stop"], peerOnly: true, peer: "no-such-supervisor {envoy}" }, quiet),
    /the supervisor ended before its Envoy was LIVE: exit code 127\n.*no-such-supervisor/s,
  );
});

for (const tool of new Set(["deno", loadTool()] as const)) {
  Deno.test(`load by ${tool} + keeps its rate, and comes back after the server was away`, async () => {
    const port = freePort();
    const servers = [startUpstream(port)];
    const url = `http://127.0.0.1:${port}/`;
    const load = startLoad({ url, requestsPerSecond: 300, leave: false }, tool);
    try {
      const served = () => servers.at(-1)!.requests;
      await until("requests at the first server", () => served() > 300);
      await servers[0]![Symbol.asyncDispose]();
      servers.push(startUpstream(port));
      await until("requests at the second server", () => served() > 300, { timeoutMs: 40_000 });
    } finally {
      const report = await load.stop();
      await servers.at(-1)![Symbol.asyncDispose]();
      assert.equal(report.tool, tool);
      assert.ok(report.answers.length > 600, `${report.answers.length} answers`);
      assert.deepEqual(report.wrong, []);
    }
  });
}

Deno.test("epochd-bench + Ctrl-C ends all that it started, and writes nothing", async () => {
  await using directory = tempDir();
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", main, "restart", "--program", "source", "--out", directory.at("out")],
    env: { TMPDIR: directory.path },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const marks: string[] = [];
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    marks.push(text);
    if (!/handoff 1/.test(text)) continue;
    child.kill("SIGINT");
  }
  const { code } = await child.status;
  assert.equal(code, 130, marks.join(""));
  assert.match(marks.join(""), /ended by SIGINT/);
  const left = () => processesOf(directory.path);
  assert.deepEqual(left(), []);
  assert.deepEqual([...Deno.readDirSync(directory.at("out"))], []);
});

/** Of the meter whose scratch directories lie here. */
function processesOf(path: string): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    if (!(pid > 0) || pid === Deno.pid || !isAlive(pid)) return false;
    try {
      return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes(path);
    } catch {
      return false;
    }
  });
}

for (
  const [args, message] of [
    [["--handoffs", "none"], /^--handoffs none: expected a whole number from 1 to 10000$/],
    [
      ["--json", "/nowhere/report.json"],
      /^--json \/nowhere\/report\.json: expected a file in a directory that is there: /,
    ],
    [["--json", "/tmp"], /^--json \/tmp: expected a file in a directory/],
    [["--out", "/proc/version/x"], /^--out \/proc\/version\/x: expected a directory, or a place for one: /],
  ] as const
) {
  Deno.test(`epochd-bench ${args.join(" ")} + one message, exit 2, nothing started`, async () => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", main, "restart", ...args],
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    assert.deepEqual([code, decoder.decode(stdout)], [2, ""]);
    const [line = "", ...more] = decoder.decode(stderr).trimEnd().split("\n");
    assert.match(line.replace(/^epochd-bench: /, ""), message);
    assert.deepEqual(more, []);
  });
}
