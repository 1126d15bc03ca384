/** The chart's way to rolls that drop nothing, and those rolls, on a real node: pods on its network hand over to each other. */
import assert from "node:assert/strict";
import { type EnvoyVersion } from "../support/envoys.ts";
import { tempDir } from "../support/tempdir.ts";
import { until } from "../support/until.ts";
import { Cluster, clusterObstacle, NODE_ADDRESS } from "./support/cluster.ts";
import { listOnNode, processesOfPod } from "./support/node.ts";
import { onlyPod, PodHistory, podsOf, type PodView } from "./support/pods.ts";
import { ADMIN_PORT, chartImages, LISTEN_PORT, Release, releaseBootstrap, UPSTREAM_PORT } from "./support/release.ts";
import { RemoteTraffic } from "./support/remote_traffic.ts";

const obstacle = await clusterObstacle();
const NAMESPACE = "edge";
const PATIENCE = { timeoutMs: 120_000, everyMs: 250 };
const ROLLS = 5;
const TIMES = {
  "hostNetwork": true,
  "settings.drain_time": "3s",
  "settings.parent_shutdown_time": "5s",
  "terminationGracePeriodSeconds": 30,
};
const CROSS_POD = { ...TIMES, "hotRestart.crossPod": true };
const SURGE = { ...CROSS_POD, "hotRestart.surge": true };

Deno.test({
  name: `the chart rolls pods on Kubernetes without a failed request${obstacle === undefined ? "" : ` (${obstacle})`}`,
  ignore: obstacle !== undefined,
  async fn(t) {
    await using directory = tempDir();
    await using cluster = await Cluster.up(await chartImages(["1.39.3", "1.40.0"], directory.path));
    await cluster.kubectl("create", "namespace", NAMESPACE);
    const release = new Release(cluster, NAMESPACE, "epochd");
    const pod = () => onlyPod(cluster, NAMESPACE, "epochd");
    const step = async (name: string, act: () => Promise<void>) => {
      if (!await t.step(name, act)) throw new Error(`${name}: failed, and the rest builds on it`);
    };
    /** The one pod, Ready, that is not the one before. */
    const successorOf = (before: PodView) =>
      until("the new pod alone is there, Ready", async () => {
        const [only, ...others] = await podsOf(cluster, NAMESPACE, "epochd");
        return others.length === 0 && only?.ready && only.uid !== before.uid ? only : undefined;
      }, PATIENCE);
    const newestEpoch = async (name: string) => (await release.status(name)).epochs.at(-1)!.epoch as number;

    /** Something that is done to the release under traffic: nothing may fail, and one pod is always Ready. */
    const harmless = async (act: () => Promise<void>) => {
      await using history = new PodHistory(cluster, NAMESPACE, "epochd");
      await using traffic = await RemoteTraffic.start(cluster, {
        hostname: NODE_ADDRESS,
        port: LISTEN_PORT,
        upstreamPort: UPSTREAM_PORT,
        requestsPerSecond: 300,
        // Shorter than a predecessor's life: one is always held when an epoch becomes LIVE.
        heldStreams: 2,
        stream: { chunks: 60, everyMs: 50 },
        admin: { port: ADMIN_PORT },
      });
      await act();
      const enough = async () => (await traffic.snapshot()).requests >= 1_500;
      await until("1500 requests were sent", enough, PATIENCE);
      const report = await traffic.stop();
      assert.equal(report.failed, 0, JSON.stringify(report.failures));
      assert.deepEqual([report.streamsBroken, report.streamsComplete > 0], [0, true], JSON.stringify(report.failures));
      assert.deepEqual(history.unready, []);
      return { report, exitCodes: history.exitCodes };
    };

    await step("install, with hot restart in place", async () => {
      await release.upgrade({ generation: "first", envoyVersion: "1.40.0", set: TIMES });
      // A DaemonSet that its controller has not looked at yet counts as rolled out.
      await until("the pod is Ready", async () => (await pod()).ready, PATIENCE);
    });

    await step("surge at once is refused, with the pods that can't hand over", async () => {
      const { name } = await pod();
      const { code, stderr } = await release.tryUpgrade({ generation: "first", envoyVersion: "1.40.0", set: SURGE });
      assert.notEqual(code, 0);
      assert.match(
        stderr,
        new RegExp(`hotRestart.surge true: .* 1 can't \\(${name}\\): upgrade with hotRestart.surge=false`),
      );
      assert.equal((await pod()).name, name);
    });

    await step("the first transition is delete first", async () => {
      const before = await pod();
      await release.upgrade({ generation: "first", envoyVersion: "1.40.0", set: CROSS_POD });
      const after = await successorOf(before);
      assert.equal(await newestEpoch(after.name), 0);
    });

    await step("surge then is only another strategy: no pod is replaced", async () => {
      const before = await pod();
      await release.upgrade({ generation: "first", envoyVersion: "1.40.0", set: SURGE });
      assert.equal((await pod()).uid, before.uid);
    });

    for (let roll = 1; roll <= ROLLS; roll++) {
      const envoyVersion: EnvoyVersion = roll % 2 === 1 ? "1.39.3" : "1.40.0";
      await step(`roll ${roll}, to Envoy ${envoyVersion}: the new pod takes over`, async () => {
        const before = await pod();
        const { report, exitCodes } = await harmless(async () => {
          await release.upgrade({ generation: "first", envoyVersion, set: SURGE });
          await successorOf(before);
        });
        assert.deepEqual(exitCodes, [0]);
        assert.deepEqual(report.epochs, [roll - 1, roll]);
        assert.ok(report.envoyVersions.some((version) => version.includes(envoyVersion)));
        const after = await pod();
        assert.deepEqual([await newestEpoch(after.name), after.restarts], [roll, 0]);
        assert.deepEqual(processesOfPod(before.uid), []);
      });
    }

    await step("an edit of the bootstrap is a handoff in the pod", async () => {
      const before = await pod();
      const { report } = await harmless(async () => {
        await release.edit(releaseBootstrap("second"));
        await until("the next epoch serves", async () => await newestEpoch(before.name) === ROLLS + 1, PATIENCE);
      });
      assert.deepEqual(report.generations, ["first", "second"]);
      assert.equal((await pod()).uid, before.uid);
    });

    await step("a new bootstrap and a new image in one upgrade drop nothing either", async () => {
      const before = await pod();
      const { report } = await harmless(async () => {
        await release.upgrade({ generation: "third", envoyVersion: "1.40.0", set: SURGE });
        const after = await successorOf(before);
        // The old pod may have seen the edit and handed over in place meanwhile, or not.
        await until(
          "one epoch serves alone",
          async () => (await release.status(after.name)).epochs.length === 1,
          PATIENCE,
        );
      });
      assert.deepEqual(report.generations, ["second", "third"]);
    });

    await step("a pod that never gets Ready holds the roll, and a rollback ends it", async () => {
      const before = await pod();
      await harmless(async () => {
        // A flag that Envoy does not know: the new pod's first start is refused, again and again.
        const set = { ...SURGE, "envoy.args[0]": "--no-such-flag" };
        const { code, stderr } = await release.tryUpgrade({ generation: "third", envoyVersion: "1.40.0", set });
        assert.equal(code, 0, stderr);
        const failing = async () => (await podsOf(cluster, NAMESPACE, "epochd")).find(({ restarts }) => restarts > 0);
        const bad = await until("the new pod has failed", failing, PATIENCE);
        assert.equal(bad.ready, false);
        // kubelet may be between two containers.
        const hasSaidWhy = async () => /no-such-flag/.test(await release.log(bad.name));
        await until("the new pod says why", hasSaidWhy, PATIENCE);
        await cluster.helm("rollback", "epochd", "-n", NAMESPACE);
        await release.rolled();
        await until("the failed pod is gone", async () => (await pod()).uid === before.uid, PATIENCE);
      });
    });

    await step("a crash of Envoy restarts the container, which serves again", async () => {
      const before = await pod();
      const envoy = processesOfPod(before.uid).find(({ command }) => command.startsWith("/usr/local/bin/envoy"));
      Deno.kill(envoy!.pid, "SIGKILL");
      await until("the container is back and Ready", async () => {
        const now = await pod();
        return now.restarts > before.restarts && now.ready;
      }, PATIENCE);
    });

    await step("after that `kubectl rollout restart` rolls as before", async () => {
      const before = await pod();
      const { exitCodes } = await harmless(async () => {
        await cluster.kubectl("-n", NAMESPACE, "rollout", "restart", "ds/epochd");
        await successorOf(before);
      });
      assert.deepEqual(exitCodes, [0]);
    });

    await step("another base id with surge is refused", async () => {
      const set = { ...SURGE, "settings.base_id": 2 };
      const { code, stderr } = await release.tryUpgrade({ generation: "third", envoyVersion: "1.40.0", set });
      assert.notEqual(code, 0);
      assert.match(stderr, /1 can't \(.*\): upgrade with hotRestart\.surge=false first.*base-id=2 user=65532:65532/);
    });

    await step("uninstall leaves two directories of the node, and no process", async () => {
      const { uid } = await pod();
      await release.uninstall();
      await until("the release's things are gone", async () => {
        const kinds = "daemonsets,pods,configmaps,serviceaccounts,secrets";
        const { items } = await cluster.json("-n", NAMESPACE, "get", kinds, "-l", "app.kubernetes.io/instance=epochd");
        return items.length === 0 && processesOfPod(uid).length === 0;
      }, PATIENCE);
      assert.deepEqual(listOnNode("/run/epochd"), [`${NAMESPACE}-epochd`]);
      assert.deepEqual(listOnNode("/dev/shm/epochd"), [`${NAMESPACE}-epochd`]);
    });
  },
});
