// Owns: ten thousand open connections across a handoff, all of one client. Must not: claim more than this process may open.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { envoyPath } from "../../tests/support/envoys.ts";
import { startEpochd } from "../../tests/support/epochd.ts";
import { HttpConnection } from "../../tests/support/http_client.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { startTraffic } from "../../tests/support/traffic.ts";
import { atMost, type Figure } from "../report.ts";
import { round } from "../sample.ts";
import { heldBy } from "./seen.ts";

const CONNECTIONS = 10_000;
/** For the rest of what a process has open. */
const SPARE_FILES = 500;
const AT_ONCE = 100;
/** Long enough for one more request on each before the predecessor ends. */
const TIMES = { drainTimeMs: 10_000, parentShutdownTimeMs: 15_000 };

export async function connectionFigures(tell: (text: string) => void): Promise<Figure[]> {
  const allowed = openFilesAllowed() - SPARE_FILES;
  const count = Math.min(CONNECTIONS, allowed);
  await using directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
  await using epochd = startEpochd({ envoyPath: envoyPath(), bootstrapPath, directory, program: "dist", ...TIMES });
  await epochd.waitForEvent("epoch_live");
  tell(`${count} open connections`);
  const connections: HttpConnection[] = [];
  const outcomes = { answered: 0, failed: 0, failures: [] as string[] };
  const request = async (connection: HttpConnection) => {
    try {
      const { status } = await connection.request({ path: "/direct", timeoutMs: 60_000 });
      if (status !== 200) throw new Error(`status ${status}`);
      outcomes.answered++;
    } catch (error) {
      outcomes.failed++;
      if (outcomes.failures.length < 5) outcomes.failures.push(String(error));
    }
  };
  try {
    await inTurns(count, async () => {
      const connection = await HttpConnection.open({ port: listenPort }, 60_000);
      connections.push(connection);
      await request(connection);
    });
    await using traffic = startTraffic({ port: listenPort, requestsPerSecond: 200 });
    const [parentPid] = epochd.envoyPids();
    const before = heldBy(epochd.pid).cpuMs;
    tell(`a handoff with ${count} open connections`);
    epochd.signal("SIGHUP");
    const { tookMs } = await epochd.waitForEvent("handoff_live", undefined, { timeoutMs: 60_000 });
    const closedEarly = connections.filter(({ reusable }) => !reusable).length;
    const drainingMb = heldBy(parentPid ?? 0).rssAnonMb;
    await inTurns(connections.length, (at) => request(connections[at]!));
    const asked = { ...outcomes };
    const { drainedMs } = await epochd.waitForEvent("handoff_done", undefined, { timeoutMs: 60_000 });
    const report = await traffic.stop();
    const cpuMs = heldBy(epochd.pid).cpuMs - before;
    return [
      atMost({
        name: `failed of ${count} connections held open across a handoff, compiled`,
        how:
          "opened by one client, one request on each before the handoff and one more after LIVE, while the predecessor drains; and 200 " +
          "requests a second beside them",
        unit: "requests",
        value: asked.failed + report.failed,
        bound: "0",
        notes: [
          `${asked.answered} answered on held connections, ${report.requests} beside them; closed without a word before LIVE: ${closedEarly}`,
          `LIVE after ${Number(tookMs)} ms, the predecessor ended ${round(Number(drainedMs) / 1000)} s later; it held ${
            round(drainingMb)
          } MB; epochd took ${round(cpuMs)} ms of CPU and ${round(heldBy(epochd.pid).rssAnonMb)} MB`,
          ...asked.failures,
          ...(count < CONNECTIONS
            ? [`ulimit -n allows this process ${count}: raise it to ${CONNECTIONS + SPARE_FILES}`]
            : []),
        ],
      }, 0),
    ];
  } finally {
    for (const connection of connections) connection.close();
  }
}

async function inTurns(count: number, act: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    for (let at = next++; at < count; at = next++) await act(at);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

function openFilesAllowed(): number {
  const line = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"));
  return Number(line?.[1] ?? 1_024);
}
