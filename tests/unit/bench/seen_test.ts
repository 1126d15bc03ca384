// Owns: that the phases of a handoff are read right from the words of epochd and Envoy, and tables are written whole. Must not: run any.
import assert from "node:assert/strict";
import { toMarkdown } from "../../../bench/report.ts";
import { envoyWords, phasesOf } from "../../../bench/scale/seen.ts";
import type { Epochd } from "../../support/epochd.ts";
import { LogLines } from "../../support/log_lines.ts";

const DAY = "2026-01-02";
/** Envoy writes local time. */
const local = (time: string) => new Date(`${DAY}T${time}`);
const envoy = (epoch: number, time: string, text: string) =>
  `[${DAY} ${time}][epoch ${epoch}][1][info][main] [server.cc:1] ${text}`;
const own = (time: string, event: string, more: Record<string, unknown> = {}) =>
  JSON.stringify({ time: local(time).toISOString(), event, ...more });

async function logged(lines: readonly string[]): Promise<Epochd> {
  const log = new LogLines();
  await log.collect(new Response(`${lines.join("\n")}\n`).body!);
  return { log } as unknown as Epochd;
}

const LINES = [
  own("10:00:00.005", "handoff_began", { handoff: 2, from: 1, to: 2 }),
  own("10:00:00.007", "preflight_passed"),
  own("10:00:00.010", "epoch_spawned", { epoch: 2 }),
  envoy(2, "10:00:00.030", "initializing epoch 2"),
  envoy(2, "10:00:00.055", "starting main dispatch loop"),
  own("10:00:00.060", "epoch_live", { epoch: 2 }),
  envoy(1, "10:00:02.055", "caught ENVOY_SIGTERM"),
  own("10:00:02.070", "epoch_exited", { epoch: 1 }),
];

Deno.test("phases of a handoff follow one another, from the trigger to the end", async () => {
  const phases = phasesOf(await logged(LINES), 2, local("10:00:00.000").getTime());
  assert.deepEqual(phases, {
    turn: 5,
    preflight: 2,
    fork: 3,
    exec: 20,
    initialising: 25,
    live: 5,
    drain: 1_995,
    end: 15,
  });
});

Deno.test("phases of a handoff that lacks a word are none", async () => {
  for (const at of LINES.keys()) {
    assert.equal(phasesOf(await logged(LINES.toSpliced(at, 1)), 2, 0), undefined, LINES[at]);
  }
});

Deno.test("a bare Envoy's words: that it initialises, and its main loop", () => {
  const words = envoyWords(["not a line of its log", ...LINES.filter((line) => line.includes("[epoch 2]"))]);
  assert.deepEqual(words, {
    firstAtMs: local("10:00:00.030").getTime(),
    loopAtMs: local("10:00:00.055").getTime(),
  });
  assert.ok(Number.isNaN(envoyWords([]).firstAtMs));
});

Deno.test("a figure's table comes after all figures, head first", () => {
  const figure = { name: "x", how: "so", unit: "ms", value: 1, bound: "<= 2", limit: 2, passed: true };
  const environment = {
    date: "",
    cores: 1,
    cpu: "",
    kernel: "",
    memoryMb: 1,
    scheduling: "normal",
    load: [0, 0] as const,
    epochd: "",
    compiled: "",
    envoy: "",
  };
  const text = toMarkdown({
    environment,
    figures: [{ ...figure, table: [["a", "b"], ["one", 2]] }, figure],
    sections: [],
  });
  assert.ok(text.endsWith("\n- **x**: so\n- **x**: so\n\n### x\n\n| a | b |\n| --- | --: |\n| one | 2 |\n"), text);
});
