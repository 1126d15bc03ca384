// Owns: playing a transcript: its input lines through the core, its output lines anew. Must not: touch files.

import type { Happening, TimerName } from "../../lib/core/event.ts";
import { initialState, type State } from "../../lib/core/state.ts";
import { transition } from "../../lib/core/transition.ts";
import { effectLine, factLine, happening, settings, stateLine } from "./script.ts";

/** To the first LIVE: attempt 1 is the preflight, attempt 2 is epoch 0. */
const SERVE = [
  "content bootstrap b0",
  "content binary x0",
  "start",
  "+5 passed 1 b0",
  "spawned 2",
  "+200 identity 2 0 LIVE",
  "marker ok",
];

/** SIGHUP to LIVE: `FROM` is the attempt that serves, `NEXT` the one of the successor, `EPOCH` its number. */
const HANDOFF = [
  "hup",
  "+5 passed NEXT b0 cached",
  "+2 inventory FROM 1 2",
  "spawned NEXT",
  "+200 identity NEXT EPOCH LIVE",
  "+3 inventory NEXT 1 2",
];

/**
 * A line with `> ` is an input, `#` a comment, anything else an output of the line before it. Inputs:
 *
 *     settings NAME=VALUE...     before everything else
 *     serve                      the first start, without a word
 *     handoff FROM NEXT EPOCH    a handoff up to LIVE, without a word
 *     [+MS] fire TIMER           the timer, when it is due
 *     [+MS] WORDS                an event, MS later (script.ts has the words)
 *     50 times WORDS             the same event again and again; only the last output is shown
 */
export function play(text: string): string {
  const player = new Player();
  const lines = text.split("\n").filter((line) => line === "" || line.startsWith("#") || line.startsWith("> "));
  const out = lines.flatMap((line) => line.startsWith("> ") ? [line, ...player.input(line.slice(2))] : [line]);
  return `${out.join("\n").replace(/\n{3,}/g, "\n\n").trimEnd()}\n`;
}

class Player {
  #state: State = initialState;
  #settings = settings([]);
  #nowMs = 10_000;
  readonly #timers = new Map<TimerName, number>();

  input(line: string): string[] {
    const repeated = /^(\d+) times (.*)$/.exec(line);
    if (repeated !== null) {
      return Array.from({ length: Number(repeated[1]) }, () => this.#one(repeated[2] ?? "")).at(-1) ?? [];
    }
    const [word, ...args] = line.split(" ");
    if (word === "settings") {
      this.#settings = settings(args);
      return [];
    }
    if (word === "serve") return this.#quietly(SERVE);
    if (word !== "handoff") return this.#one(line);
    const [from = "", next = "", epoch = ""] = args;
    return this.#quietly(
      HANDOFF.map((one) => one.replace("FROM", from).replace("NEXT", next).replace("EPOCH", epoch)),
    );
  }

  #quietly(lines: readonly string[]): string[] {
    for (const line of lines) this.#one(line);
    return [`  ${stateLine(this.#state, this.#nowMs, this.#timers)}`];
  }

  #one(line: string): string[] {
    const timed = /^\+(\d+) (.*)$/.exec(line);
    this.#nowMs += Number(timed?.[1] ?? 0);
    const words = timed?.[2] ?? line;
    if (words.startsWith("fire ")) return this.#fire(words.slice(5) as TimerName);
    return this.#step(happening(words, this.#nowMs));
  }

  #fire(name: TimerName): string[] {
    const dueAtMs = this.#timers.get(name);
    if (dueAtMs === undefined) throw new Error(`timer ${name} does not run`);
    if (dueAtMs < this.#nowMs) throw new Error(`timer ${name} was due ${this.#nowMs - dueAtMs} ms ago`);
    this.#nowMs = dueAtMs;
    this.#timers.delete(name);
    return this.#step({ kind: "timer", name });
  }

  #step(happening: Happening): string[] {
    const { state, effects, facts } = transition(this.#state, { ...happening, atMs: this.#nowMs }, this.#settings);
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === "set_timer") this.#timers.set(effect.name, this.#nowMs + effect.afterMs);
      if (effect.kind === "clear_timer") this.#timers.delete(effect.name);
    }
    if (state.phase.kind === "ended") this.#timers.clear();
    return [
      ...facts.map((fact) => `  say ${factLine(fact)}`),
      ...effects.map(effectLine).filter((text) => text !== undefined).map((text) => `  do  ${text}`),
      `  ${stateLine(state, this.#nowMs, this.#timers)}`,
    ];
  }
}
