// Owns: what is seen of a supervisor with a real Envoy: metrics, ledger, events, watching. Must not: repeat the unit tests' details.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { startCollector } from "../support/collector.ts";
import { type Epochd, epochdCommand } from "../support/epochd.ts";
import { fetchOnce } from "../support/http_client.ts";
import { holdStream } from "../support/held_stream.ts";
import { pause, until, within } from "../support/until.ts";
import { handoff, scene, STREAM } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 3_000 };

async function metricsOf(epochd: Epochd): Promise<string> {
  const { status, body } = await fetchOnce({ path: epochd.apiSocket }, { path: "/metrics" });
  assert.equal(status, 200);
  return body;
}

function valueOf(text: string, series: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? NaN : Number(line.slice(series.length + 1));
}

/** A command that goes on, and what it has printed so far. */
function follow(epochd: Epochd, ...args: string[]) {
  const [path, ...first] = epochdCommand();
  const [name = "", ...rest] = args;
  const child = new Deno.Command(path, {
    args: [...first, name, "--api-socket", epochd.apiSocket, ...rest],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let stdout = "";
  const read = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) stdout += text;
  })();
  const stderr = new Response(child.stderr).text();
  return {
    get stdout() {
      return stdout;
    },
    kill: (signal: Deno.Signal) => child.kill(signal),
    async ended() {
      const { code } = await within(`the end of epochd ${args.join(" ")}`, child.status);
      await read;
      return { code, stdout, stderr: await stderr };
    },
  };
}

Deno.test("metrics count the first start, a handoff and a refused one, from before the API was there", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  epochd.signal("SIGHUP");
  await handoff(epochd, 1, "done");
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  await epochd.waitForEvent("handoff_failed");
  const text = await metricsOf(epochd);
  const of = (name: string, labels = "") => valueOf(text, `epochd_${name}{service="envoy"${labels}}`);
  assert.equal(of("epochs_spawned_total"), 2);
  assert.equal(of("handoffs_total", ',source="signal",result="live"'), 1);
  assert.equal(of("handoffs_total", ',source="bootstrap",result="failed"'), 1);
  assert.equal(of("refusals_total", ',reason="bootstrap_invalid"'), 1);
  assert.equal(of("child_exits_total", ',role="predecessor",how="clean"'), 1);
  assert.equal(of("epoch_start_seconds_count"), 2);
  assert.equal(of("drain_seconds_count"), 1);
  assert.ok(of("drain_seconds_sum") > 2.5 && of("drain_seconds_sum") < 8, text);
  assert.deepEqual([of("ready"), of("refused_contents"), of("epoch", ',envoy_version="1.40.0"')], [1, 1, 1]);
  const again = await metricsOf(epochd);
  assert.equal(valueOf(again, 'epochd_api_requests_total{route="/metrics",method="GET",code="200"}'), 1);
});

Deno.test("history tells of a handoff with its client, versions, times and the predecessor's connections, also after the end", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const held = [0, 1].map(() => holdStream({ target: here.listener, chunks: 400, everyMs: 50, stallMs: 20_000 }));
  await Promise.all(held.map(({ opened }) => opened));
  // Envoy counts them at its next flush.
  await pause(1_200);
  const asked = await epochd.command("restart", "--wait");
  assert.equal(asked.code, 0, asked.stderr);
  const past = await until("the line is written", async () => {
    const { stdout } = await epochd.command("history", "--kind", "handoff", "--json");
    const [entry] = JSON.parse(stdout);
    return entry?.outcome === "done" ? entry : undefined;
  });
  const { from, to, source, who, envoyVersion, fromVersion, connectionsAtDrain, connectionsAtEnd, pid } = past;
  assert.deepEqual({ from, to, source, who }, { from: 0, to: 1, source: "api", who: "unix socket" });
  assert.deepEqual([fromVersion, envoyVersion, pid], ["1.40.0", "1.40.0", epochd.pid]);
  // Both streams outlive the drain and are cut at the parent shutdown time: that is what the number is for.
  assert.deepEqual([connectionsAtDrain, connectionsAtEnd], [2, 2]);
  assert.ok(past.drainMs > 2_500 && past.liveMs > 10 && past.preflightMs > 0, JSON.stringify(past));
  for (const stream of held) stream.abandon();
  epochd.signal("SIGHUP");
  await handoff(epochd, 2);
  const open = await epochd.command("history");
  assert.match(open.stdout, /envoy 1 -> 2 +under way +signal +SIGHUP/);
  assert.match(
    open.stdout,
    /envoy 0 -> 1 +done +api +unix socket +LIVE after .*, drained .*, connections 2 to 2, Envoy 1\.40\.0/,
  );
  assert.match(open.stdout, /configuration 1 +runs +start/);
  epochd.signal("SIGTERM");
  await epochd.exit;
  const without = await epochd.command("history", "--state-dir", epochd.stateDir);
  assert.match(without.stdout, /envoy 1 -> 2 +done +signal/);
  assert.match(without.stdout, /envoy 0 -> 1 +done/);
});

Deno.test("events shows the past and ends; --follow goes on, ends at SIGINT with 0 and at the end of the supervisor with 0", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const past = await epochd.command("events");
  assert.deepEqual([past.code, past.stderr], [0, ""]);
  assert.match(past.stdout, /INFO {2}envoy: epoch 0 is LIVE/);
  const lines = (await epochd.command("events", "--json", "--last", "3")).stdout.trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.deepEqual(lines.map(({ event }) => event).includes("epoch_live"), true);
  const stopped = follow(epochd, "events", "--follow");
  const whole = follow(epochd, "events", "--follow", "--last", "0", "--json");
  await until("it shows the past", () => stopped.stdout.includes("epoch 0 is LIVE"));
  epochd.signal("SIGHUP");
  await until("it shows what happens", () => stopped.stdout.includes("handoff 1 is done"));
  stopped.kill("SIGINT");
  assert.deepEqual({ ...await stopped.ended(), stdout: "" }, { code: 0, stdout: "", stderr: "" });
  epochd.signal("SIGTERM");
  const { code, stdout, stderr } = await whole.ended();
  assert.deepEqual([code, stderr], [0, "the supervisor has ended\n"]);
  const seen = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.ok(
    !seen.some(({ epoch, event }) => event === "epoch_live" && epoch === 0),
    "--last 0 shows nothing of the past",
  );
  assert.ok(seen.some(({ event }) => event === "handoff_done"));
  assert.deepEqual(seen.map(({ seq }) => seq), seen.map((_, at) => seen[0].seq + at), "none is missing");
  const other = await epochd.command("events", "--service", "edge");
  assert.equal(other.code, 1, "nobody is there any more");
});

Deno.test("status --watch elsewhere than on a terminal is a line for each change, with connections and the end of the drain", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const stream = holdStream({ target: here.listener, ...STREAM, stallMs: 20_000 });
  await stream.opened;
  const watching = follow(epochd, "status", "--watch");
  await until("it counts", () => /envoy: serving, ready, newest 0 \(1 connections\)/.test(watching.stdout), {
    timeoutMs: 10_000,
  });
  epochd.signal("SIGHUP");
  await until(
    "it drains",
    () =>
      /serving \(predecessor_drains\), ready, newest 1 \(\d+ connections\), predecessor 0 \(1 connections\), epoch 0 ends in [0-3](\.\d)? (m?)s/
        .test(watching.stdout),
    { timeoutMs: 10_000 },
  ).catch((error) => assert.fail(`${error}\n${watching.stdout}`));
  await handoff(epochd, 1, "done");
  await until("it is over", () => /serving, ready, newest 1 \(\d+ connections\)\n$/.test(watching.stdout));
  stream.abandon();
  assert.ok(!watching.stdout.includes("\x1b"), "nothing of a terminal");
  watching.kill("SIGINT");
  assert.equal((await watching.ended()).code, 0);
});

Deno.test("a collector gets one trace a handoff, also of a refused one; one that is away costs a line, no handoff", async () => {
  await using here = scene();
  await using collector = startCollector();
  const epochd = await here.start({ ...SHORT, environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint } });
  assert.equal((await epochd.command("restart", "--wait")).code, 0);
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  await epochd.waitForEvent("handoff_failed");
  await until("both traces", () => collector.spans().filter(({ name }) => name === "handoff").length === 2);
  const spans = collector.spans();
  assert.deepEqual(spans.map(({ name, status }) => [name, status.code]), [
    ["handoff", 1],
    ["preflight", 1],
    ["start", 1],
    ["drain", 1],
    ["handoff", 2],
    ["preflight", 2],
  ]);
  const drain = spans.find(({ name }) => name === "drain")!;
  assert.ok(drain.tookMs > 2_500 && drain.tookMs < 6_000, String(drain.tookMs));
  assert.equal(spans[4]?.attributes["epochd.refusal"], "bootstrap_invalid");
  collector.answer = () => new Response("", { status: 503 });
  here.edit({ generation: "good again" });
  await handoff(epochd, 3, "done");
  await epochd.waitForEvent("traces_failed");
  epochd.signal("SIGTERM");
  assert.equal((await within("the end", epochd.exit)).code, 0);
  assert.equal(epochd.log.events.filter(({ event }) => event === "traces_failed").length, 1);
});

Deno.test("status --watch on a terminal redraws one screen and gives it back at Ctrl-C", {
  ignore: !existsSync("/usr/bin/script"),
}, async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 2_000, parentShutdownTimeMs: 4_000 });
  const command = [...epochdCommand(), "status", "--watch", "--api-socket", epochd.apiSocket].join(" ");
  const child = new Deno.Command("/usr/bin/script", {
    args: ["-qfec", `stty rows 30 columns 140; exec ${command}`, "/dev/null"],
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
    env: { TERM: "xterm" },
  }).spawn();
  let seen = "";
  const read = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) seen += text;
  })();
  await until("it draws", () => seen.includes("CONNECTIONS"));
  epochd.signal("SIGHUP");
  await until("it counts down", () => /epoch 0 drains .*#.*ends in \d/.test(seen));
  await handoff(epochd, 1, "done");
  // deno-lint-ignore no-control-regex
  await until("the last handoffs", () => /envoy 0 -> 1 +done +signal/.test(seen.replaceAll(/\x1b\[[0-9;]*m/g, "")));
  const writer = child.stdin.getWriter();
  await writer.write(Uint8Array.of(3));
  const { code } = await within("the end of the watch", child.status);
  await writer.close().catch(() => {});
  await read;
  assert.equal(code, 0);
  assert.ok(seen.includes("\x1b[?1049h") && seen.trimEnd().endsWith("\x1b[?1049l"), "the screen before is there again");
});
