// Owns: the ways in which the soak asks for a handoff, and what became of each. Must not: count, or end the soak.
import { ENVOY_VERSIONS } from "../../tests/support/envoys.ts";
import type { LogEvent } from "../../tests/support/log_lines.ts";
import { until } from "../../tests/support/until.ts";
import type { Stage } from "./stage.ts";
import type { HandoffRecord, Trigger } from "./tally.ts";

/** An upgrade reads 100 MB again and checks anew: one in ten is more than anyone will ever do. */
const TURN: readonly Trigger[] = [
  ...["SIGHUP", "edit", "restart", "edit", "SIGHUP"] as const,
  ...["restart", "edit", "SIGHUP", "restart", "binary"] as const,
];
const SOURCE: Readonly<Record<Trigger, string>> = {
  SIGHUP: "signal",
  edit: "bootstrap",
  restart: "api",
  binary: "binary",
};
/** On a machine that others use: far above what a handoff takes (live timeout 60 s), and no measure of it. */
const LATE_MS = 180_000;

export async function nextHandoff(stage: Stage, number: number, startedMs: number): Promise<HandoffRecord> {
  const trigger = TURN[(number - 1) % TURN.length]!;
  const { log } = stage.epochd;
  log.forget(300);
  const mark = log.mark();
  const askedMs = performance.now();
  const record = { number, trigger, atMs: Math.round(askedMs - startedMs) };
  const said = (name: string) => log.events.slice(mark).filter(({ event }) => event === name);
  try {
    await ask(stage, trigger, number);
    const ended = await Promise.race([
      until("the handoff ends", () => endOf(said, SOURCE[trigger]), { timeoutMs: LATE_MS }),
      stage.epochd.exit.then(({ code, signal }) => {
        throw new Error(`epochd ended with ${signal ?? code}`);
      }),
    ]);
    if (ended.event === "handoff_failed") {
      return { ...record, outcome: "failed", detail: `${ended.refusal}: ${ended.detail ?? ended.message ?? ""}` };
    }
    const same = ({ handoff }: LogEvent) => handoff === ended.handoff;
    const taken = (name: string, of = same) => Number(said(name).find(of)?.tookMs ?? NaN);
    return {
      ...record,
      outcome: "done",
      epoch: Number(ended.to),
      preflightMs: taken("preflight_passed", () => true),
      startMs: taken("epoch_live", ({ epoch }) => epoch === ended.to),
      liveMs: taken("handoff_live"),
      drainedMs: Number(ended.drainedMs),
    };
  } catch (error) {
    return {
      ...record,
      outcome: "lost",
      detail: `${error instanceof Error ? error.message : error}\n${lastWords(log.lines)}`,
    };
  }
}

async function ask(stage: Stage, trigger: Trigger, number: number): Promise<void> {
  switch (trigger) {
    case "SIGHUP":
      return stage.epochd.signal("SIGHUP");
    case "edit":
      return stage.edit(String(number));
    case "restart": {
      const { code, stderr } = await stage.epochd.command("restart");
      if (code !== 0) throw new Error(`epochd restart ended with ${code}: ${stderr.trim()}`);
      return;
    }
    case "binary": {
      const at = ENVOY_VERSIONS.indexOf(stage.envoyVersion);
      return stage.install(ENVOY_VERSIONS[(at + 1) % ENVOY_VERSIONS.length]!);
    }
  }
}

/** What epochd said, and what was not usual for Envoy. */
function lastWords(lines: readonly string[]): string {
  return lines.filter((line) => !/\]\[(?:info|debug|trace)\]/.test(line)).slice(-30).map((line) => line.slice(0, 400))
    .join("\n");
}

/** Of the handoff that this trigger asked for; one that epochd tries again by itself is another one. */
function endOf(said: (name: string) => LogEvent[], source: string): LogEvent | undefined {
  const began = said("handoff_began").find((event) => event.source === source);
  if (began === undefined) return undefined;
  return ["handoff_done", "handoff_failed"].flatMap(said).find(({ handoff }) => handoff === began.handoff);
}
