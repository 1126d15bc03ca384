import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import { lineOptions, type LogOptions, openLog } from "../../../lib/observe/log.ts";
import type { RecordedFact } from "../../../lib/observe/record.ts";

const live: Fact = { kind: "epoch_live", epoch: 1, pid: 42, version: "abc/1.40.0/Clean", tookMs: 312 };

function record(fact: Fact, seq = 1): RecordedFact {
  return { seq, service: "edge", wallMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6), fact };
}

/** A stderr that takes what it is told to. */
class Sink {
  text = "";
  /** Settled by hand: while it is pending, nobody reads. */
  blocked: Promise<void> = Promise.resolve();
  most = Infinity;
  broken = false;

  readonly write = async (bytes: Uint8Array): Promise<number> => {
    await this.blocked;
    if (this.broken) throw new Deno.errors.BrokenPipe();
    const taken = bytes.subarray(0, this.most);
    this.text += new TextDecoder().decode(taken);
    return taken.length;
  };

  get lines(): readonly string[] {
    return this.text.split("\n").slice(0, -1);
  }
}

function open(sink: Sink, options: Partial<LogOptions> = {}) {
  return openLog({ form: "json", colour: false, level: "info", wallMs: () => 0, write: sink.write, ...options });
}

Deno.test("log writes one JSON object a line with time, level, event, service, msg and the fields", async () => {
  const sink = new Sink();
  const log = open(sink);
  log.fact(record(live));
  await log.flush(1_000);
  assert.deepEqual(JSON.parse(sink.lines[0]!), {
    time: "2026-01-02T03:04:05.006Z",
    level: "info",
    event: "epoch_live",
    service: "edge",
    msg: "epoch 1 is LIVE after 312 ms (pid 42, Envoy 1.40.0)",
    epoch: 1,
    pid: 42,
    version: "abc/1.40.0/Clean",
    tookMs: 312,
  });
  assert.equal(sink.lines.length, 1);
});

Deno.test("log writes what happens to the supervisor without a service", async () => {
  const sink = new Sink();
  const log = open(sink);
  log.shell({ kind: "signal_received", signal: "SIGHUP" });
  await log.flush(1_000);
  const line = JSON.parse(sink.lines[0]!) as Record<string, unknown>;
  assert.equal("service" in line, false);
  assert.equal(line.event, "signal_received");
  assert.equal(line.time, "1970-01-01T00:00:00.000Z");
});

Deno.test("log writes readable text with time, level and service, coloured only when asked", async () => {
  for (const colour of [false, true]) {
    const sink = new Sink();
    const log = open(sink, { form: "text", colour });
    log.fact(record(live));
    await log.flush(1_000);
    const level = colour ? "\x1b[36mINFO \x1b[0m" : "INFO ";
    assert.equal(sink.text, `03:04:05.006 ${level} edge: epoch 1 is LIVE after 312 ms (pid 42, Envoy 1.40.0)\n`);
  }
});

Deno.test("log keeps one line an event whatever the values hold", async () => {
  const nasty: Fact = { kind: "content_unusable", subject: "bootstrap", problem: "a\nb\x1b[2J\u2028c" };
  for (const form of ["json", "text"] as const) {
    const sink = new Sink();
    const log = open(sink, { form });
    log.fact(record(nasty));
    await log.flush(1_000);
    assert.equal(sink.lines.length, 1);
    assert.ok(!sink.text.includes("\x1b"));
  }
});

Deno.test("log leaves out what is below its level", async () => {
  const sink = new Sink();
  const log = open(sink, { level: "warn" });
  log.fact(record(live));
  log.shell({ kind: "api_failed", path: "/a", problem: "b" });
  await log.flush(1_000);
  assert.deepEqual(sink.lines.map((line) => (JSON.parse(line) as { event: string }).event), ["api_failed"]);
});

Deno.test("log keeps the order and every byte where stderr takes a few bytes at a time", async () => {
  const sink = new Sink();
  sink.most = 7;
  const log = open(sink);
  for (let epoch = 0; epoch < 20; epoch++) log.fact(record({ ...live, epoch } as Fact));
  await log.flush(5_000);
  assert.deepEqual(sink.lines.map((line) => (JSON.parse(line) as { epoch: number }).epoch), [...Array(20).keys()]);
});

Deno.test("log drops what does not fit while stderr is blocked, and tells how many lines", async () => {
  const sink = new Sink();
  const { promise, resolve } = Promise.withResolvers<void>();
  sink.blocked = promise;
  const log = open(sink, { queueBytes: 4_096 });
  for (let epoch = 0; epoch < 1_000; epoch++) log.fact(record({ ...live, epoch } as Fact));
  resolve();
  await log.flush(5_000);
  const lines = sink.lines.map((line) => JSON.parse(line) as { event: string; lines?: number });
  const told = lines.filter(({ event }) => event === "log_lines_dropped");
  const written = lines.length - told.length;
  assert.equal(told.length, 1);
  assert.equal(told[0]?.lines, 1_000 - written);
  assert.ok(sink.text.length < 2 * 4_096);
  log.fact(record(live));
  await log.flush(1_000);
  assert.equal(sink.lines.length, lines.length + 1, "it goes on afterwards");
});

Deno.test("log flush gives up after its bound on a stderr that nobody reads", async () => {
  const sink = new Sink();
  const { promise, resolve } = Promise.withResolvers<void>();
  sink.blocked = promise;
  const log = open(sink);
  log.fact(record(live));
  await log.flush(20);
  assert.equal(sink.text, "");
  resolve();
  await log.flush(1_000);
  assert.equal(sink.lines.length, 1);
});

Deno.test("log survives a stderr that is gone, and tells what it missed once it is back", async () => {
  const sink = new Sink();
  sink.broken = true;
  const log = open(sink);
  log.fact(record(live));
  await log.flush(1_000);
  log.fact(record(live));
  await log.flush(1_000);
  sink.broken = false;
  log.fact(record(live));
  await log.flush(1_000);
  const lines = sink.lines.map((line) => JSON.parse(line) as { event: string; lines?: number });
  assert.deepEqual(lines.map(({ event }) => event).toSorted(), ["epoch_live", "log_lines_dropped"]);
  assert.equal(lines.find(({ event }) => event === "log_lines_dropped")?.lines, 2);
});

Deno.test("log format auto is text on a terminal and JSON elsewhere; colour needs a terminal and no NO_COLOR", () => {
  assert.deepEqual(lineOptions("auto", true, false), { form: "text", colour: true });
  assert.deepEqual(lineOptions("auto", true, true), { form: "text", colour: false });
  assert.deepEqual(lineOptions("auto", false, false), { form: "json", colour: false });
  assert.deepEqual(lineOptions("text", false, false), { form: "text", colour: false });
  assert.deepEqual(lineOptions("json", true, false), { form: "json", colour: false });
});
