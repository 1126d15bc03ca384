// Owns: what a roll across pods costs: from the start of the new supervisor to LIVE, to Ready, and to the end of the old one.
import { fetchOnce } from "../tests/support/http_client.ts";
import { writeBootstrap } from "../tests/support/bootstrap.ts";
import { freeBaseId, removeSegment } from "../tests/support/base_ids.ts";
import { envoyPath, type EnvoyVersion, NEWEST_ENVOY, spawnEnvoy } from "../tests/support/envoys.ts";
import { type Epochd, startEpochd } from "../tests/support/epochd.ts";
import { freePorts } from "../tests/support/ports.ts";
import { type TempDir, tempDir } from "../tests/support/tempdir.ts";
import { liveAtMs } from "./observe.ts";
import { atMost, type Figure } from "./report.ts";
import { median, round, spread } from "./sample.ts";

const ROUNDS = 10;
const RATIO = 1.2;
const TIMES = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

interface Took {
  readonly envoy: number;
  readonly first: number;
  readonly join: number;
  /** Of another Envoy, with all its checks. */
  readonly other: number;
  readonly ready: number;
  readonly gone: number;
}

export async function podFigures(tell: (text: string) => void): Promise<Figure[]> {
  const took: Took[] = [];
  // The first round warms caches and is not counted.
  for (let number = 0; number <= ROUNDS; number++) {
    const one = await roll();
    if (number > 0) took.push(one);
    tell(`pods, round ${number} of ${ROUNDS}`);
  }
  const of = (name: keyof Took) => took.map((one) => one[name]);
  const [envoy, first, join, other] = (["envoy", "first", "join", "other"] as const).map((name) =>
    median(of(name))
  ) as [
    number,
    number,
    number,
    number,
  ];
  return [
    atMost({
      name: "cross-pod start to LIVE, compiled",
      how:
        "from before the fork of epochd until it tells that its epoch is LIVE, joining another supervisor's epoch, beside the " +
        "same start with nobody there, in turns; by the log, since asking the old Envoy every few milliseconds slows it down",
      unit: "x",
      value: join / first,
      bound: `<= ${RATIO} x a start with nobody there`,
      notes: [
        `joining ${round(join)} ms, alone ${round(first)} ms, a bare Envoy ${round(envoy)} ms (medians)`,
        `joining takes from ${round(Math.min(...of("join")))} to ${round(Math.max(...of("join")))} ms`,
        `joining with another Envoy than the one that serves: ${round(other)} ms, the whole preflight is in it`,
      ],
    }, RATIO),
    atMost({
      name: "end of the predecessor to Ready of the new pod",
      how: "from the exit of the old pod's Envoy, by its supervisor's log, until the new pod's marker is there",
      unit: "ms",
      value: median(of("ready")),
      samples: spread(of("ready")),
      bound: "< 1000 ms",
    }, 1_000),
    atMost({
      name: "SIGTERM to the end of a superseded supervisor",
      how: "from the signal until the process is reaped",
      unit: "ms",
      value: median(of("gone")),
      samples: spread(of("gone")),
      bound: "< 1000 ms",
    }, 1_000),
  ];
}

/** A bare Envoy, a first pod, a second one that joins, and the end of the first. */
async function roll(): Promise<Took> {
  await using shared = tempDir();
  await using one = tempDir();
  await using two = tempDir();
  await using three = tempDir();
  const directories = { a: one, b: two, c: three };
  const envoy = await bareStart();
  const baseId = freeBaseId();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(shared.at("envoy.yaml"), { listenPort, adminPort });
  const start = (directory: TempDir, version: EnvoyVersion = NEWEST_ENVOY) =>
    startEpochd({
      envoyPath: envoyPath(version),
      bootstrapPath,
      baseId,
      directory,
      program: "dist",
      ...TIMES,
      extraArguments: ["--cross-pod", "--state-dir", shared.at("state"), "--when-superseded", "wait"],
    });
  const live = async (epochd: Epochd, since: number) => (await epochd.waitForEvent("epoch_live")).receivedAtMs - since;
  const firstMs = Date.now();
  const a = start(directories.a);
  const first = await live(a, firstMs);
  await a.waitForEvent("ready_changed");
  const joinMs = Date.now();
  const b = start(directories.b);
  const join = await live(b, joinMs);
  const [ended] = await Promise.all([a.waitForEvent("epoch_exited"), untilMarker(b)]);
  const ready = Deno.statSync(b.readyMarker).mtime!.getTime() - Date.parse(String(ended.time));
  await a.waitForEvent("superseded");
  const beganMs = performance.now();
  a.signal("SIGTERM");
  await a.exit;
  const gone = performance.now() - beganMs;
  const otherMs = Date.now();
  const c = start(directories.c, "1.39.3");
  const other = await live(c, otherMs);
  await b.waitForEvent("superseded");
  // One that is left would take the traffic back.
  b.signal("SIGTERM");
  await b.exit;
  await c[Symbol.asyncDispose]();
  await b[Symbol.asyncDispose]();
  await a[Symbol.asyncDispose]();
  return { envoy, first, join, other, ready: Math.max(0, ready), gone };
}

async function bareStart(): Promise<number> {
  await using directory = tempDir();
  const baseId = freeBaseId();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
  const beganMs = performance.now();
  await using _ = spawnEnvoy({ bootstrapPath, baseId });
  const tookMs = await liveAtMs(adminPort, 0) - beganMs;
  await fetchOnce({ port: listenPort }, { path: "/direct" });
  removeSegment(baseId);
  return tookMs;
}

async function untilMarker(epochd: Epochd): Promise<void> {
  await epochd.waitForEvent("ready_changed", ({ ready }) => ready === true);
  // Written right after it was told; the next refresh comes two seconds later.
  for (;;) {
    try {
      Deno.statSync(epochd.readyMarker);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}
