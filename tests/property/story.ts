// Tells a counterexample as a story: `deno run tests/property/story.ts '<scenario as fast-check printed it>' [restMs]`.

import type { Fact } from "../../lib/core/fact.ts";
import { play, type Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

export function story(world: World): string[] {
  const lines = world.trace.flatMap(({ event, after, effects, facts }) => {
    const told = facts.filter(({ kind }) => kind !== "late_answer").map(factText);
    const done = effects.filter(({ kind }) => kind === "signal" || kind === "spawn").map((effect) =>
      JSON.stringify(effect)
    );
    if (told.length === 0 && done.length === 0) return [];
    const { phase } = after;
    const where = "step" in phase ? `${phase.kind}/${phase.step.kind}` : phase.kind;
    return [`${event.atMs} ${event.kind} -> ${where}`, ...[...told, ...done].map((line) => `      ${line}`)];
  });
  return [...lines, ...world.broken.map(({ rule, detail, atMs }) => `BROKEN at ${atMs}: ${rule}: ${detail}`)];
}

function factText({ kind, ...rest }: Fact): string {
  return `${kind} ${JSON.stringify(rest)}`;
}

if (import.meta.main) {
  const scenario: Scenario = JSON.parse(Deno.args[0] ?? "");
  const text = story(play(scenario, Number(Deno.args[1] ?? 60_000))).join("\n");
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}
