// Owns: a run of the drop meter: every scenario, for epochd and for its peer, one after the other. Must not: write files.
import { compile } from "../../tools/compile.ts";
import { obstacles } from "./crowd.ts";
import type { MeterReport, ScenarioReport } from "./meter_report.ts";
import { DEFAULTS, type MeterOptions } from "./options.ts";
import { PROTOCOLS } from "./protocols.ts";
import { restart, roll, type ScenarioOptions, sessionMsOf, stop, upgrade } from "./scenarios.ts";
import { epochdSubject, peerSubject } from "./subject.ts";

/** `over` ends the run and all that it has started; the promise then rejects with its reason. */
export async function meterFigures(
  options: Partial<MeterOptions>,
  tell: (text: string) => void,
  over: AbortSignal = new AbortController().signal,
): Promise<MeterReport> {
  const asked = { ...DEFAULTS, ...options };
  const { scenarios, envoy, peer, peerOnly, handoffs, rolls, requestsPerSecond, program } = asked;
  const { drainTimeMs, parentShutdownTimeMs } = asked;
  if (program === "dist" && !peerOnly) await compile();
  const bounds = { drainTimeMs, parentShutdownTimeMs };
  const each: ScenarioOptions = { envoy, handoffs, rolls, bounds, requestsPerSecond, program, over, tell };
  const subjects = [
    ...(peerOnly ? [] : [await epochdSubject(program)]),
    ...(peer === undefined ? [] : [peerSubject(peer)]),
  ];
  const reports: ScenarioReport[] = [];
  for (const scenario of scenarios) {
    for (const subject of subjects) {
      switch (scenario) {
        case "restart":
          reports.push(await restart(subject, each));
          break;
        case "upgrade":
          reports.push(await upgrade(subject, each));
          break;
        case "roll":
          // A command line says nothing of how two of a peer would find each other.
          if (subject.key === "epochd") reports.push(await roll(subject, each));
          break;
        case "stop":
          reports.push(await stop(subject, each));
          break;
      }
    }
  }
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC",
    bounds,
    ...(peer !== undefined && { peer }),
    requestsPerSecond,
    sessionMs: sessionMsOf(bounds),
    missing: [...obstacles()].map(([protocol, why]) => ({ title: PROTOCOLS[protocol].title, why })),
    scenarios: reports,
  };
}
