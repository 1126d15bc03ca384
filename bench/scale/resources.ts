// Owns: memory and CPU of epochd and of Envoy, idle and during handoffs. Must not: judge what Envoy takes.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { envoyPath } from "../../tests/support/envoys.ts";
import { startEpochd } from "../../tests/support/epochd.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { pause } from "../observe.ts";
import { atMost, type Figure } from "../report.ts";
import { round } from "../sample.ts";
import { type Held, heldBy } from "./seen.ts";

/** Past what a start still does: reading the executable for its digest, the API. */
const SETTLE_MS = 12_000;
const IDLE_MS = 10_000;
const HANDOFFS = 5;
const LOOK_EVERY_MS = 20;
const RSS_MB = 32;

export async function resourceFigures(tell: (text: string) => void): Promise<Figure[]> {
  await using directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    directory,
    program: "dist",
    drainTimeMs: 1_000,
    parentShutdownTimeMs: 2_000,
    extraArguments: ["--watch-binary"],
  });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  tell("memory and CPU, idle");
  await pause(SETTLE_MS);
  const [envoyPid] = epochd.envoyPids();
  const before = [heldBy(epochd.pid), heldBy(envoyPid ?? 0)] as const;
  await pause(IDLE_MS);
  const idle = [heldBy(epochd.pid), heldBy(envoyPid ?? 0)] as const;
  const most = { own: 0, ownPss: 0, envoys: 0, envoysPss: 0, ownCpuMs: 0, startCpuMs: 0 };
  for (let number = 1; number <= HANDOFFS; number++) {
    tell(`memory and CPU, handoff ${number} of ${HANDOFFS}`);
    const ownMs = heldBy(epochd.pid).cpuMs;
    epochd.signal("SIGHUP");
    let done = false;
    const ended = epochd.waitForEvent("handoff_done", ({ handoff }) => handoff === number).then(() => done = true);
    const live = epochd.waitForEvent("epoch_live", ({ epoch }) => epoch === number)
      .then(({ pid }) => most.startCpuMs += heldBy(Number(pid)).cpuMs);
    while (!done) {
      const own = heldBy(epochd.pid);
      const envoys = epochd.envoyPids().map(heldBy);
      most.own = Math.max(most.own, own.rssAnonMb);
      most.ownPss = Math.max(most.ownPss, own.pssMb);
      most.envoys = Math.max(most.envoys, sum(envoys, "rssAnonMb"));
      most.envoysPss = Math.max(most.envoysPss, sum(envoys, "pssMb"));
      await pause(LOOK_EVERY_MS);
    }
    await Promise.all([ended, live]);
    most.ownCpuMs += heldBy(epochd.pid).cpuMs - ownMs;
  }
  const percent = (at: 0 | 1) => `${round(100 * (idle[at].cpuMs - before[at].cpuMs) / IDLE_MS, 2)} %`;
  const each = (ms: number) => `${round(ms / HANDOFFS)} ms a handoff`;
  return [
    atMost({
      name: "most RssAnon during handoffs, compiled",
      how: `of epochd, in ${HANDOFFS} handoffs, looked at every ${LOOK_EVERY_MS} ms. In the table: idle ${
        SETTLE_MS / 1000
      } s after its start, over ${
        IDLE_MS / 1000
      } s; Envoy's during a handoff is both epochs' together, its CPU that of the new one until LIVE`,
      unit: "MB",
      value: most.own,
      bound: `< ${RSS_MB} MB`,
      table: [
        [
          "process",
          "RssAnon idle",
          "PSS idle",
          "CPU idle",
          "RssAnon in a handoff",
          "PSS in a handoff",
          "CPU of a handoff",
        ],
        [
          "epochd",
          mb(idle[0].rssAnonMb),
          mb(idle[0].pssMb),
          percent(0),
          mb(most.own),
          mb(most.ownPss),
          each(most.ownCpuMs),
        ],
        [
          "Envoy",
          mb(idle[1].rssAnonMb),
          mb(idle[1].pssMb),
          percent(1),
          mb(most.envoys),
          mb(most.envoysPss),
          each(most.startCpuMs),
        ],
      ],
    }, RSS_MB),
  ];
}

function sum(all: readonly Held[], name: keyof Held): number {
  return all.reduce((total, held) => total + held[name], 0);
}

function mb(value: number): string {
  return `${round(value)} MB`;
}
