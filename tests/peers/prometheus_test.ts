// Owns: that bench/continuity/promql.ts computes what a real Prometheus does, on what that one scraped from an Envoy across handoffs.
// Must not: judge the figures.
import assert from "node:assert/strict";
import { increase, type Point, rate, resets } from "../../bench/continuity/promql.ts";
import { REQUESTS } from "../../bench/continuity/run.ts";
import { handoff, scene } from "../integration/scene.ts";
import { debianProgram } from "../support/debian_program.ts";
import { fetchOnce } from "../support/http_client.ts";
import { freePort } from "../support/ports.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { until, within } from "../support/until.ts";

const prometheus = await debianProgram("prometheus");
const { obstacle } = prometheus;
const name = "rate() and increase() across handoffs + as a real Prometheus computes them";

Deno.test(obstacle === undefined ? name : `${name} (${obstacle})`, { ignore: obstacle !== undefined }, async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  here.traffic({ requestsPerSecond: 100 });
  await using directory = tempDir();
  await using server = startPrometheus(directory, (here.admin as { port: number }).port);
  for (const number of [1, 2]) {
    await until("it has scraped this epoch twice", async () => {
      const points = await server.samples(REQUESTS);
      return resets(points).length === number - 1 && points.length >= 3 * number;
    });
    epochd.signal("SIGHUP");
    await handoff(epochd, number, "done");
  }
  const samples = await until("both resets are scraped, and what follows", async () => {
    const points = await server.samples(REQUESTS);
    return resets(points).length === 2 && points.at(-1)!.atMs - resets(points)[1]!.atMs > 1_000 ? points : undefined;
  });
  let compared = 0;
  for (const rangeMs of [2_000, 5_000, 60_000]) {
    // Of no sample's time: on the edge of a window versions of Prometheus differ.
    for (let atMs = samples[1]!.atMs + 137; atMs < samples.at(-1)!.atMs; atMs += 211) {
      const range = `${REQUESTS}[${rangeMs}ms]`;
      assertSame(increase(samples, atMs, rangeMs), await server.query(`increase(${range})`, atMs));
      assertSame(rate(samples, atMs, rangeMs), await server.query(`rate(${range})`, atMs));
      compared++;
    }
  }
  assert.ok(compared > 20, `only ${compared} windows`);
});

function assertSame(own: number | undefined, theirs: number | undefined): void {
  if (own === undefined || theirs === undefined) return assert.equal(own, theirs);
  assert.ok(Math.abs(own - theirs) <= 1e-6 * Math.abs(theirs), `${own} is not Prometheus' ${theirs}`);
}

function startPrometheus(directory: TempDir, adminPort: number) {
  const port = freePort();
  const config = directory.write(
    "prometheus.yml",
    JSON.stringify({
      global: { scrape_interval: "500ms", scrape_timeout: "500ms" },
      scrape_configs: [{
        job_name: "envoy",
        metrics_path: "/stats/prometheus",
        static_configs: [{ targets: [`127.0.0.1:${adminPort}`] }],
      }],
    }),
  );
  const child = new Deno.Command(prometheus.path, {
    args: [
      `--config.file=${config}`,
      `--storage.tsdb.path=${directory.at("data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const ask = async (query: string, atMs: number) => {
    const parameters = new URLSearchParams({ query, time: String(atMs / 1000) });
    const { status, body } = await fetchOnce({ port }, { path: `/api/v1/query?${parameters}` });
    if (status !== 200) throw new Error(`${query}: ${status} ${body}`);
    return JSON.parse(body).data.result as { value?: [number, string]; values?: [number, string][] }[];
  };
  const samples = async (series: string): Promise<Point[]> => {
    const [result] = await ask(`${series}[10m]`, Date.now());
    return (result?.values ?? []).map(([second, text]) => ({ atMs: Math.round(second * 1000), value: Number(text) }));
  };
  return {
    samples,
    async query(expression: string, atMs: number): Promise<number | undefined> {
      const [result] = await ask(expression, atMs);
      return result?.value === undefined ? undefined : Number(result.value[1]);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await within("the end of Prometheus", child.status);
    },
  };
}
