// Owns: what 1, 100 and 1,000 listeners make of a handoff, beside a bare Envoy with as many. Must not: measure fewer than it says.
import { type BootstrapOptions, writeBootstrap } from "../../tests/support/bootstrap.ts";
import { envoyPath } from "../../tests/support/envoys.ts";
import { startEpochd } from "../../tests/support/epochd.ts";
import type { Json } from "../../tests/support/listeners.ts";
import type { LogEvent } from "../../tests/support/log_lines.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { startTraffic } from "../../tests/support/traffic.ts";
import { bareEnvoy } from "../handoffs.ts";
import { atMost, type Figure } from "../report.ts";
import { median, round } from "../sample.ts";
import { heldBy } from "./seen.ts";

const SCALES = [
  { count: 1, form: "yaml" },
  { count: 100, form: "yaml" },
  { count: 1_000, form: "yaml" },
  { count: 1_000, form: "json" },
] as const;
type Scale = typeof SCALES[number];
/** Of each: SIGHUP and, every other time, an edit, which the checks have not seen. */
const ROUNDS = 3;
const RATIO = 1.15;
const TIMES = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

interface Seen {
  readonly scale: Scale;
  readonly bytes: number;
  readonly bareMs: number;
  readonly hupMs: number;
  readonly preflightMs: number;
  readonly editMs: number;
  readonly rssAnonMb: number;
  readonly requests: number;
  readonly failed: number;
}

export async function listenerFigures(tell: (text: string) => void): Promise<Figure[]> {
  const seen: Seen[] = [];
  for (const scale of SCALES) seen.push(await measure(scale, tell));
  const most = seen.find(({ scale }) => scale.count === 1_000 && scale.form === "yaml")!;
  const failed = seen.reduce((sum, one) => sum + one.failed, 0);
  return [
    atMost({
      name: `SIGHUP to LIVE with ${most.scale.count} listeners, compiled`,
      how:
        "from the signal to epochd's own LIVE, beside a bare Envoy's next epoch with as many, in turns; a static YAML bootstrap without " +
        "aliases; medians",
      unit: "x",
      value: most.hupMs / most.bareMs,
      bound: `<= ${RATIO} x a bare epoch`,
      notes: [
        "YAML is read by a library in epochd's own process, 4 MB a second; JSON costs it a tenth. What that took V8 gives back with later handoffs",
      ],
      table: [
        [
          "listeners",
          "bootstrap",
          "bare Envoy to LIVE",
          "SIGHUP to LIVE",
          "edit: preflight",
          "edit: its turn to LIVE",
          "RssAnon of epochd",
          "requests",
          "failed",
        ],
        ...seen.map((one) => [
          one.scale.count,
          `${one.scale.form}, ${round(one.bytes / 1000)} kB`,
          `${round(one.bareMs)} ms`,
          `${round(one.hupMs)} ms`,
          `${round(one.preflightMs)} ms`,
          `${round(one.editMs)} ms`,
          `${round(one.rssAnonMb)} MB`,
          one.requests,
          one.failed,
        ]),
      ],
    }, RATIO),
    atMost({
      name: "failed requests with 1, 100 and 1,000 listeners",
      how: `200 requests a second across ${2 * ROUNDS} handoffs of each`,
      unit: "requests",
      value: failed,
      bound: "0",
    }, 0),
  ];
}

async function measure(scale: Scale, tell: (text: string) => void): Promise<Seen> {
  await using directory = tempDir();
  const { count, form } = scale;
  const options = many(count);
  const bootstrapPath = writeBootstrap(directory.at(`envoy.${form}`), options);
  await using bare = await bareEnvoy(many(count), TIMES);
  await using epochd = startEpochd({ envoyPath: envoyPath(), bootstrapPath, directory, program: "dist", ...TIMES });
  await epochd.waitForEvent("epoch_live", undefined, { timeoutMs: 60_000 });
  await using traffic = startTraffic({ port: options.listenPort, requestsPerSecond: 200 });
  const took = { bare: [] as number[], hup: [] as number[], preflight: [] as number[], edit: [] as number[] };
  let rssAnonMb = 0;
  for (let number = 1; number <= 2 * ROUNDS; number++) {
    tell(`${count} listeners (${form}), handoff ${number} of ${2 * ROUNDS}`);
    const isEdit = number % 2 === 0;
    if (!isEdit) took.bare.push(await bare.next());
    const beganMs = performance.now();
    if (isEdit) writeBootstrap(bootstrapPath, { ...options, generation: String(number) });
    else epochd.signal("SIGHUP");
    const same = ({ handoff }: LogEvent) => handoff === number;
    const live = await epochd.waitForEvent("handoff_live", same, { timeoutMs: 60_000 });
    if (isEdit) took.edit.push(Number(live.tookMs));
    else took.hup.push(live.receivedAtMs - (Date.now() - (performance.now() - beganMs)));
    if (isEdit) {
      took.preflight.push(Number(epochd.log.events.findLast(({ event }) => event === "preflight_passed")?.tookMs));
    }
    rssAnonMb = Math.max(rssAnonMb, heldBy(epochd.pid).rssAnonMb);
    await epochd.waitForEvent("handoff_done", same, { timeoutMs: 60_000 });
  }
  const { requests, failed } = await traffic.stop();
  return {
    scale,
    bytes: Deno.statSync(bootstrapPath).size,
    bareMs: median(took.bare),
    hupMs: median(took.hup),
    preflightMs: median(took.preflight),
    editMs: median(took.edit),
    rssAnonMb,
    requests,
    failed,
  };
}

/** Each listener written out, as tools write them. */
function many(count: number): BootstrapOptions {
  const [listenPort, adminPort, ...extraListenPorts] = freePorts(count + 1) as [number, number, ...number[]];
  const change = (bootstrap: Json) => {
    bootstrap.static_resources = JSON.parse(JSON.stringify(bootstrap.static_resources));
  };
  return { listenPort, adminPort, extraListenPorts, change };
}
