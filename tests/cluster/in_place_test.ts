/** The chart without crossPod on a real node: a pod of its own network, under the `restricted` policy of Kubernetes. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { envoyPath } from "../support/envoys.ts";
import { until } from "../support/until.ts";
import { tempDir } from "../support/tempdir.ts";
import { Cluster, clusterObstacle } from "./support/cluster.ts";
import { processesOfPod } from "./support/node.ts";
import { ownBootstrap, writeOwnWorkload } from "./support/own_workload.ts";
import { onlyPod, PodHistory, podsOf } from "./support/pods.ts";
import { chartDir, chartImages, LISTEN_PORT, Release, releaseBootstrap, UPSTREAM_PORT } from "./support/release.ts";
import { RemoteTraffic } from "./support/remote_traffic.ts";

const obstacle = await clusterObstacle();
const NAMESPACE = "edge";
/** Executables that are pushed, in the pod's own emptyDir. */
const slots = { "settings.slots_dir": "/run/epochd/slots" };

Deno.test({
  name: `the chart hot restarts in place on Kubernetes${obstacle === undefined ? "" : ` (${obstacle})`}`,
  ignore: obstacle !== undefined,
  async fn(t) {
    await using directory = tempDir();
    await using cluster = await Cluster.up(await chartImages(["1.39.3", "1.40.0"], directory.path));
    await cluster.apply({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    const release = new Release(cluster, NAMESPACE, "epochd");
    const pod = () => onlyPod(cluster, NAMESPACE, "epochd");
    const epochs = async (name: string) =>
      // deno-lint-ignore no-explicit-any
      (await release.status(name)).epochs.map(({ epoch, role }: any) => `${epoch} ${role}`).join();

    const step = async (name: string, act: () => Promise<void>) => {
      if (!await t.step(name, act)) throw new Error(`${name}: failed, and the rest builds on it`);
    };

    await step("the API server takes all that the chart renders", async () => {
      for (const values of globSync(join(import.meta.dirname!, "../chart/values/*.yaml"))) {
        const manifest = await cluster.helm("template", "edge", chartDir, "-n", "default", "-f", values);
        // The monitoring operator's kinds are not in a bare cluster; tests/chart looks at those with promtool and Prometheus.
        const known = manifest.split(/^---$/m).filter((part) => !/^apiVersion: monitoring\.coreos\.com\//m.test(part));
        await cluster.pipe(known.join("---"), "apply", "--dry-run=server", "--validate=strict", "-f", "-");
      }
    });

    await step("install", async () => {
      await release.upgrade({ generation: "first", envoyVersion: "1.40.0", set: slots });
      // A DaemonSet that its controller has not looked at yet counts as rolled out.
      await until("the pod is Ready", async () => (await pod()).ready, { timeoutMs: 120_000, everyMs: 250 });
      assert.equal((await pod()).restarts, 0);
    });

    await step("epochd answers in an image without a shell", async () => {
      const { name } = await pod();
      assert.equal(await epochs(name), "0 newest");
      const shell = await release.exec(name, "sh", "-c", "true");
      assert.notEqual(shell.code, 0);
      const probe = await release.exec(name, "epochd-probe", "--ready-marker", "/run/epochd/ready");
      assert.deepEqual(probe, { code: 0, stdout: "", stderr: "" });
    });

    await step("edits of the bootstrap are handoffs in the same pod, and drop nothing", async () => {
      const before = await pod();
      await using history = new PodHistory(cluster, NAMESPACE, "epochd");
      await using traffic = await RemoteTraffic.start(cluster, {
        hostname: before.ip,
        port: LISTEN_PORT,
        upstreamPort: UPSTREAM_PORT,
        requestsPerSecond: 200,
      });
      const patience = { timeoutMs: 120_000, everyMs: 250 };
      await release.upgrade({ generation: "second", envoyVersion: "1.40.0", set: slots });
      await traffic.hold({ chunks: 60, everyMs: 100 });
      await until("the second epoch serves", async () => (await epochs(before.name)).includes("1 newest"), patience);

      // Envoy refuses this one, and nothing changes.
      await release.edit(releaseBootstrap("third").replace("static_resources", "static_resource"));
      const refused = async () => (await release.status(before.name)).refused[0];
      const { refusal } = await until("the bootstrap is refused", refused, patience);
      assert.equal(refusal.name, "bootstrap_invalid");
      assert.match(refusal.detail, /static_resource/);
      assert.equal((await pod()).ready, true);

      // The next good one goes through.
      await release.edit(releaseBootstrap("fourth"));
      await until("the third epoch serves alone", async () => (await epochs(before.name)) === "2 newest", patience);

      const report = await traffic.stop();
      assert.equal(report.failed, 0, JSON.stringify(report.failures));
      assert.deepEqual([report.streamsComplete, report.streamsBroken], [1, 0]);
      assert.ok(report.requests >= 1_500, `only ${report.requests} requests`);
      assert.deepEqual(report.generations, ["first", "second", "fourth"]);
      assert.deepEqual(history.unready, []);
      const { uid, restarts } = await pod();
      assert.deepEqual({ uid, restarts }, { uid: before.uid, restarts: 0 });
    });

    await step("another Envoy is pushed through kubectl exec, serves in the same pod, and goes back", async () => {
      const before = await pod();
      const run = (from: string, ...command: string[]) =>
        cluster.kubectlFrom(from, "-n", NAMESPACE, "exec", "-i", before.name, "-c", "envoy", "--", ...command);
      const newest = async () => (await release.status(before.name)).epochs[0];
      await using traffic = await RemoteTraffic.start(cluster, {
        hostname: before.ip,
        port: LISTEN_PORT,
        upstreamPort: UPSTREAM_PORT,
        requestsPerSecond: 200,
      });
      const path = envoyPath("1.39.3");
      const digest = await sha256Of(path);
      const broken = await run(path, "epochd", "push", "-", "--sha256", "0".repeat(64), "--wait");
      assert.equal(broken.code, 1, broken.stdout);
      assert.equal((await newest()).version, "1.40.0");
      const pushed = await run(path, "epochd", "push", "-", "--sha256", digest, "--wait");
      assert.equal(pushed.code, 0, pushed.stdout);
      assert.equal((await newest()).version, "1.39.3");
      const { stdout: kept } = await release.exec(before.name, "epochd", "binaries", "--json");
      assert.match(kept, new RegExp(digest));
      const back = await release.exec(before.name, "epochd", "rollback", "--binary", "--to", "installed", "--wait");
      assert.equal(back.code, 0, back.stderr);
      assert.equal((await newest()).version, "1.40.0");
      const report = await traffic.stop();
      assert.equal(report.failed, 0, JSON.stringify(report.failures));
      const { uid, restarts, ready } = await pod();
      assert.deepEqual({ uid, restarts, ready }, { uid: before.uid, restarts: 0, ready: true });
    });

    await step("nothing is left as a zombie", async () => {
      const { uid } = await pod();
      const processes = processesOfPod(uid);
      assert.ok(processes.some(({ command }) => command.includes("/opt/epochd/epochd run")), JSON.stringify(processes));
      assert.deepEqual(processes.filter(({ zombie }) => zombie), []);
    });

    for (const [what, pattern] of [["Envoy", "/usr/local/bin/envoy"], ["epochd", "/opt/epochd/epochd run"]] as const) {
      await step(`a crash of ${what} restarts the container, and it serves again`, async () => {
        const before = await pod();
        const victim = processesOfPod(before.uid).find(({ command }) => command.startsWith(pattern));
        assert.ok(victim, `no ${what} in the pod`);
        Deno.kill(victim.pid, "SIGKILL");
        const recovered = await until("the container is back and Ready", async () => {
          const now = await pod();
          return now.restarts > before.restarts && now.ready ? now : undefined;
        }, { timeoutMs: 120_000, everyMs: 250 });
        assert.equal(recovered.uid, before.uid);
        assert.equal(await epochs(recovered.name), "0 newest");
        const left = processesOfPod(before.uid).filter(({ command }) => command.startsWith("/usr/local/bin/envoy"));
        assert.equal(left.length, 1, JSON.stringify(left));
      });
    }

    await step("another image, and a port below 1024, replace the pod", async () => {
      const before = await pod();
      // What values.yaml says of ports below 1024.
      const sysctl = "podSecurityContext.sysctls[0]";
      await release.upgrade(
        { generation: "fourth", envoyVersion: "1.39.3", listenPort: 80 },
        ...["--set", `${sysctl}.name=net.ipv4.ip_unprivileged_port_start`, "--set-string", `${sysctl}.value=0`],
      );
      const after = await until("the new pod alone is there", async () => {
        const [only, ...others] = await podsOf(cluster, NAMESPACE, "epochd");
        return others.length === 0 && only !== undefined && only.ready && only.uid !== before.uid ? only : undefined;
      }, { timeoutMs: 120_000 });
      assert.equal(after.image, "localhost/envoy:1.39.3");
      const { stdout } = await cluster.onNode("curl", ["--silent", "--fail", `http://${after.ip}:80/direct`]);
      assert.notEqual(stdout, "");
    });

    await step("without hotRestart Envoy runs alone", async () => {
      await release.upgrade({
        generation: "fifth",
        envoyVersion: "1.40.0",
        set: { "hotRestart.enabled": false, "plainReadinessProbe.tcpSocket.port": LISTEN_PORT },
      });
      const plain = await until("the plain pod is Ready", async () => {
        const [only, ...others] = await podsOf(cluster, NAMESPACE, "epochd");
        return others.length === 0 && only?.ready && only.image === "localhost/envoy:1.40.0" ? only : undefined;
      }, { timeoutMs: 120_000 });
      const commands = processesOfPod(plain.uid).map(({ command }) => command);
      assert.deepEqual(commands.filter((command) => command !== "/pause"), [
        "/usr/local/bin/envoy -c /etc/envoy/envoy.yaml",
      ]);
    });

    await step("uninstall leaves nothing", async () => {
      const { uid } = await pod();
      await release.uninstall();
      const isClean = async () => {
        const kinds = "daemonsets,pods,configmaps,serviceaccounts,secrets";
        const { items } = await cluster.json("-n", NAMESPACE, "get", kinds, "-l", "app.kubernetes.io/instance=epochd");
        return items.length === 0 && processesOfPod(uid).length === 0;
      };
      await until("the release's things are gone", isClean, { timeoutMs: 120_000 });
    });

    await step("the Kustomize component brings epochd into a DaemonSet that is there already", async () => {
      const { plain, withEpochd } = writeOwnWorkload(directory);
      const own = new Release(cluster, NAMESPACE, "own");
      const ownPod = () => onlyPod(cluster, NAMESPACE, "own");
      await cluster.kubectl("-n", NAMESPACE, "apply", "-k", plain);
      await own.rolled();
      const before = await ownPod();
      await cluster.kubectl("-n", NAMESPACE, "apply", "-k", withEpochd);
      await own.rolled();
      const after = await until("the pod with epochd is alone", async () => {
        const [only, ...others] = await podsOf(cluster, NAMESPACE, "own");
        return others.length === 0 && only?.uid !== before.uid ? only : undefined;
      }, { timeoutMs: 120_000 });
      await cluster.apply(ownBootstrap("second"), NAMESPACE);
      const served = async () => (await own.status(after!.name)).epochs.at(-1).epoch === 1;
      await until("an edit of the bootstrap has led to a second epoch", served, { timeoutMs: 120_000, everyMs: 250 });
    });
  },
});

async function sha256Of(path: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
