/** A Prometheus with the PodMonitor's words scrapes a supervisor that has the chart's arguments, and takes its rules and dashboard. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";
import { isOlder, leastTcpRuntime } from "../../lib/config/api_rules.ts";
import { scene } from "../integration/scene.ts";
import { hasOpenssl, makeAuthority, makeCertificate } from "../support/certificates.ts";
import { debianProgram } from "../support/debian_program.ts";
import { runEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { until } from "../support/until.ts";
import { helmObstacle, template } from "./helm.ts";

const prometheus = await debianProgram("prometheus");
const [, runtime = ""] = /\(deno (\S+)\)/.exec((await runEpochd(["--version"])).stdout) ?? [];
const tooOld = isOlder(runtime, leastTcpRuntime) ? `Deno ${runtime} can't serve the API over TCP` : undefined;
const obstacle = helmObstacle ?? prometheus.obstacle ?? tooOld ?? (hasOpenssl ? undefined : "openssl is missing");

// deno-lint-ignore no-explicit-any
async function render(port: number): Promise<readonly any[]> {
  const values = ["pod_monitor", "prometheus_rule", "dashboard"].flatMap((name) => [
    "-f",
    join(import.meta.dirname!, `values/${name}.yaml`),
  ]);
  const { code, stdout, stderr } = await template(...values, "--set", `metrics.port=${port},metrics.address=127.0.0.1`);
  assert.equal(code, 0, stderr);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

Deno.test({
  name: `Prometheus scrapes a pod as the PodMonitor says${obstacle === undefined ? "" : ` (${obstacle})`}`,
  ignore: obstacle !== undefined,
  async fn() {
    await using here = scene();
    const { directory } = here;
    const [port, ownPort] = freePorts(2) as [number, number];
    const documents = await render(port);
    const of = (kind: string, end = "") =>
      documents.find((one) => one.kind === kind && String(one.metadata.name).endsWith(end));

    const { certPath: caPath } = makeAuthority(directory);
    const { certPath, keyPath } = makeCertificate(directory, "epochd", { alternatives: "DNS:epochd.edge.test" });
    const keysPath = directory.at("keys");
    const key = (await runEpochd(["key", "create", "prometheus", "--role", "read", "--file", keysPath])).stdout.trim();
    const { args } = of("DaemonSet").spec.template.spec.containers[0];
    const mounted = { "/etc/epochd/tls/tls.crt": certPath, "/etc/epochd/tls/tls.key": keyPath };
    const paths: Readonly<Record<string, string>> = { ...mounted, "/etc/epochd/keys/keys": keysPath };
    const listening = args.slice(args.indexOf("--api-listen"), args.indexOf("--api-keys-file") + 2);
    const extraArguments = listening.map((arg: string) => paths[arg] ?? arg);
    const epochd = await here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000, extraArguments });
    await epochd.waitForEvent("api_listening", ({ path }) => String(path).endsWith(`:${port}`));

    const [endpoint] = of("PodMonitor").spec.podMetricsEndpoints;
    const snaked = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const relabel_configs = endpoint.relabelings.map((one: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(one).map(([name, value]) => [snaked(name), value]))
    );
    const pod = { namespace: "gateways", pod: "edge-epochd-x7k2p" };
    const discovered = { __meta_kubernetes_pod_ip: "127.0.0.1", __meta_kubernetes_pod_node_name: "node-1" };
    const targetOf = (container: string) => ({
      targets: ["127.0.0.1"],
      labels: { ...pod, ...discovered, __meta_kubernetes_pod_container_name: container },
    });
    const { scheme, path: metrics_path, authorization, tlsConfig } = endpoint;
    const config = directory.write(
      "prometheus.yaml",
      stringify({
        rule_files: [directory.write("alerts.yaml", stringify(of("PrometheusRule").spec))],
        scrape_configs: [{
          ...{ job_name: "epochd", scheme, metrics_path, scrape_interval: "500ms", scrape_timeout: "500ms" },
          authorization: { type: authorization.type, credentials: key },
          tls_config: { ca_file: caPath, server_name: tlsConfig.serverName },
          // A container twice is one that declares two ports; the other one is a sidecar.
          static_configs: [targetOf("envoy"), targetOf("envoy"), targetOf("logs")],
          relabel_configs,
        }],
      }),
    );
    const child = new Deno.Command(prometheus.path, {
      args: [
        ...[`--config.file=${config}`, `--storage.tsdb.path=${directory.at("tsdb")}`],
        ...[`--web.listen-address=127.0.0.1:${ownPort}`, "--log.level=error"],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    try {
      const ask = async (expr: string) => {
        const url = `http://127.0.0.1:${ownPort}/api/v1/query?query=${encodeURIComponent(expr)}`;
        const answer = await fetch(url).then((response) => response.json()).catch(() => undefined);
        return answer as
          | { status: string; data: { result: { metric: unknown; value: [number, string] }[] } }
          | undefined;
      };
      const resultOf = async (expr: string) => (await ask(expr))?.data?.result ?? [];
      const ready = await until("a scrape", async () => {
        const result = await resultOf("epochd_ready == 1");
        return result.length > 0 && result;
      });
      const at = { instance: `127.0.0.1:${port}`, job: "epochd", node: "node-1" };
      assert.deepEqual(ready.map(({ metric }) => metric), [{
        __name__: "epochd_ready",
        service: "envoy",
        ...pod,
        ...at,
      }]);
      const rules = await fetch(`http://127.0.0.1:${ownPort}/api/v1/rules`).then((response) => response.json());
      assert.equal(rules.data.groups[0].rules.length, 10);

      assert.equal((await epochd.command("restart", "--wait")).code, 0);
      await until("the handoff in a scrape", async () => {
        const result = await resultOf('sum(epochd_handoffs_total{result="live"}) == 1');
        return result.length > 0;
      });
      const { panels } = parse(of("ConfigMap", "-dashboard").data["epochd.json"]);
      const variables = /\$(namespace|pod|service)\b/g;
      for (const { title, targets } of panels) {
        for (const { expr } of targets) {
          const answer = await ask(expr.replace(variables, ".*").replaceAll("$__rate_interval", "1m"));
          assert.equal(answer?.status, "success", `${title}: ${expr}`);
        }
        const shows = await Promise.all(
          targets.map(({ expr }: { expr: string }) =>
            resultOf(expr.replace(variables, ".*").replaceAll("$__rate_interval", "1m"))
          ),
        );
        // What happened shows at once; the first of the kinds that did not happen has no series before.
        const isEmpty = shows.every((result) => result.length === 0);
        assert.ok(!isEmpty || title === "Child exits", `nothing in ${title}`);
      }
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
  },
});
