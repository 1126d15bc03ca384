// Owns: that Prometheus' own tool has nothing to say about the metrics. Must not: test their values.
import assert from "node:assert/strict";
import { Metrics } from "../../lib/observe/metrics.ts";
import { scene } from "../integration/scene.ts";
import { debianProgram } from "../support/debian_program.ts";
import { fetchOnce } from "../support/http_client.ts";

const promtool = await debianProgram("promtool", "prometheus");
const { obstacle } = promtool;

async function check(text: string): Promise<string> {
  const child = new Deno.Command(promtool.path, {
    args: ["check", "metrics"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return `${code} ${decoder.decode(stdout)}${decoder.decode(stderr)}`.trim();
}

function test(name: string, run: () => Promise<void>): void {
  Deno.test(obstacle === undefined ? name : `${name} (${obstacle})`, { ignore: obstacle !== undefined }, run);
}

test("promtool finds nothing in the metrics of a supervisor with a real Envoy", async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  assert.equal((await epochd.command("restart", "--wait")).code, 0);
  const { body, headers } = await fetchOnce({ path: epochd.apiSocket }, { path: "/metrics" });
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.match(body, /^epochd_handoffs_total\{service="envoy",source="api",result="live"\} 1$/m);
  assert.equal(await check(body), "0");
});

test("promtool would say so: a metric against its rules is found", async () => {
  const { text } = await new Metrics({ status: () => ({}), droppedLogLines: () => 0 }).text();
  assert.equal(await check(text), "0");
  assert.match(await check(`${text}# TYPE epochd_bad counter\nepochd_bad 1\n`), /^3 .*epochd_bad/s);
});
