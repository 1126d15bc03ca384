// Owns: ten services of one supervisor, hot restarted all at once. Must not: know a service's settings beyond what it gives.
import { stringify } from "yaml";
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { freeBaseId } from "../../tests/support/base_ids.ts";
import { envoyPath } from "../../tests/support/envoys.ts";
import { startEpochd } from "../../tests/support/epochd.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { startTraffic } from "../../tests/support/traffic.ts";
import { bareEnvoy } from "../handoffs.ts";
import { pause } from "../observe.ts";
import { atMost, type Figure } from "../report.ts";
import { median, round, spread } from "../sample.ts";
import { heldBy } from "./seen.ts";

const SERVICES = 10;
const ROUNDS = 3;
const RATIO = 1.25;
const SETTLE_MS = 3_000;
const IDLE_MS = 6_000;
/** What one service is allowed, and each further one. */
const RSS_MB = 32 + 3 * (SERVICES - 1);

export async function serviceFigures(tell: (text: string) => void): Promise<Figure[]> {
  await using directory = tempDir();
  const services = Array.from({ length: SERVICES }, (_, at) => {
    const [listenPort, adminPort] = freePorts(2) as [number, number];
    const name = `service-${at}`;
    const bootstrapPath = writeBootstrap(directory.at(`${name}.yaml`), { listenPort, adminPort });
    return { name, listenPort, bootstrapPath, baseId: freeBaseId() };
  });
  const fields = services.map(({ name, bootstrapPath, baseId }) => [name, {
    envoy_path: envoyPath(),
    envoy_config: bootstrapPath,
    base_id: baseId,
    concurrency: 1,
    drain_time: "1s",
    parent_shutdown_time: "2s",
    watch_binary: true,
    state_dir: directory.at(`state-${name}`),
    ready_marker: directory.at(`ready-${name}`),
  }]);
  const configPath = directory.write("epochd.yaml", stringify({ services: Object.fromEntries(fields) }));
  await using bares = new AsyncDisposableStack();
  const bare = await Promise.all(services.map(async () => bares.use(await bareEnvoy())));
  const [first] = services as [typeof services[number]];
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath: first.bootstrapPath,
    baseId: first.baseId,
    configPath,
    directory,
    program: "dist",
  });
  for (const { name } of services) await epochd.waitForEvent("epoch_live", ({ service }) => service === name);
  tell(`${SERVICES} services, idle`);
  await pause(SETTLE_MS);
  const before = heldBy(epochd.pid);
  await pause(IDLE_MS);
  const idle = heldBy(epochd.pid);
  const idlePercent = 100 * (idle.cpuMs - before.cpuMs) / IDLE_MS;
  await using flowing = new AsyncDisposableStack();
  const traffics = services.map(({ listenPort }) =>
    flowing.use(startTraffic({ port: listenPort, requestsPerSecond: 40 }))
  );
  const took = { own: [] as number[], bare: [] as number[], least: [] as number[] };
  for (let number = 1; number <= ROUNDS; number++) {
    tell(`${SERVICES} services at once, ${number} of ${ROUNDS}`);
    took.bare.push(Math.max(...await Promise.all(bare.map((one) => one.next()))));
    const beganMs = Date.now();
    epochd.signal("SIGHUP");
    const lives = await Promise.all(
      services.map(({ name }) =>
        epochd.waitForEvent("handoff_live", ({ service, to }) => service === name && to === number, {
          timeoutMs: 60_000,
        })
      ),
    );
    const ms = lives.map(({ time }) => Date.parse(String(time)) - beganMs);
    took.own.push(Math.max(...ms));
    took.least.push(Math.min(...ms));
    for (const { name } of services) {
      await epochd.waitForEvent("handoff_done", ({ service, to }) => service === name && to === number, {
        timeoutMs: 60_000,
      });
    }
  }
  const reports = await Promise.all(traffics.map((traffic) => traffic.stop()));
  const failed = reports.reduce((sum, report) => sum + report.failed, 0);
  const requests = reports.reduce((sum, report) => sum + report.requests, 0);
  const most = heldBy(epochd.pid);
  return [
    atMost({
      name: `SIGHUP to the last LIVE of ${SERVICES} services in one supervisor, compiled`,
      how: `beside as many bare Envoys that start their next epochs at once, in turns with them: ${
        round(median(took.bare))
      } ms`,
      unit: "x",
      value: median(took.own) / median(took.bare),
      bound: `<= ${RATIO} x`,
      notes: [
        `the last after ${took.own.map((ms) => round(ms, 0)).join(", ")} ms, the first after ${
          took.least.map((ms) => round(ms, 0)).join(", ")
        } ms; bare ${took.bare.map((ms) => round(ms, 0)).join(", ")} ms`,
      ],
    }, RATIO),
    atMost({
      name: `failed requests in ${ROUNDS} hot restarts of ${SERVICES} services at once`,
      how: `${requests} requests to all of them`,
      unit: "requests",
      value: failed,
      bound: "0",
    }, 0),
    atMost({
      name: `RssAnon of epochd with ${SERVICES} services, compiled`,
      how: `idle, and after ${ROUNDS} hot restarts of all`,
      unit: "MB",
      value: Math.max(idle.rssAnonMb, most.rssAnonMb),
      samples: spread([idle.rssAnonMb, most.rssAnonMb]),
      bound: `< 32 MB and 3 MB for each further service = ${RSS_MB} MB`,
      notes: [
        `CPU when idle ${round(idlePercent, 2)} % of a core over ${IDLE_MS / 1000} s, with all watches and markers`,
      ],
    }, RSS_MB),
  ];
}
