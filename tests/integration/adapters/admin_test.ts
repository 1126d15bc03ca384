import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { EnvoyAdmin } from "../../../lib/adapters/admin.ts";
import { ENVOY_VERSIONS } from "../../support/envoys.ts";
import { HttpConnection } from "../../support/http_client.ts";
import { freePort } from "../../support/ports.ts";
import { until } from "../../support/until.ts";
import { blackHole } from "../../support/xds.ts";
import { RealEnvoy } from "./real_envoy.ts";

/** Established connections to a port of this machine, counted by the kernel at the server's end. */
function established(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return Deno.readTextFileSync("/proc/net/tcp").split("\n").filter((line) => {
    const [, address, , state] = line.trim().split(/\s+/);
    return address?.endsWith(local) === true && state === "01";
  }).length;
}

async function hold(port: number): Promise<HttpConnection> {
  const connection = await HttpConnection.open({ port });
  await connection.request({ path: "/direct" });
  return connection;
}

for (const version of ENVOY_VERSIONS) {
  Deno.test(`EnvoyAdmin, Envoy ${version}: identity and inventory of a static bootstrap`, async () => {
    await using envoy = new RealEnvoy(version);
    await envoy.startLive(0);
    const { admin } = envoy.plan;
    const answer = await envoy.admin.identity(admin);
    if (answer.kind === "silent") throw new Error(answer.detail);
    const { version: said, ...identity } = answer.identity;
    deepStrictEqual(identity, { epoch: 0, state: "LIVE", hotRestartVersion: "11.104", concurrency: 1 });
    strictEqual(said.split("/")[1], version);
    deepStrictEqual(await envoy.admin.inventory(admin), { listeners: 1, clusters: 0 });
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: counts open connections through a drain, and neither its own nor a scraper's`, async () => {
    await using envoy = new RealEnvoy(version, { flags: { concurrency: 2 } });
    await envoy.startLive(0);
    const { admin } = envoy.plan;
    if (admin.kind !== "tcp") throw new Error("admin is on TCP here");
    const count = () => envoy.admin.connections(admin);
    deepStrictEqual(await count(), { active: 0, total: 0 });
    using scraper = await HttpConnection.open({ port: admin.port });
    await scraper.request({ path: "/ready" });
    const held = await Promise.all([1, 2, 3].map(() => hold(envoy.listenPort)));
    try {
      await until("three are counted", async () => (await count())?.active === 3);
      strictEqual((await count())?.total, 3);
      strictEqual((await envoy.admin.drain(admin, "listeners")).ok, true);
      // The drain time is over when the listener is closed; the three live on.
      await until(
        "the listener is closed",
        () => Deno.connect({ port: envoy.listenPort }).then((it) => (it.close(), false), () => true),
      );
      strictEqual(established(envoy.listenPort), 3);
      strictEqual((await count())?.active, 3);
      held.shift()?.close();
      await until("two are counted", async () => (await count())?.active === 2);
      strictEqual(established(envoy.listenPort), 2);
    } finally {
      for (const connection of held) connection.close();
    }
    await until("none is counted", async () => (await count())?.active === 0);
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: a parent's connections count in its successor until the parent has ended`, async () => {
    await using envoy = new RealEnvoy(version, { flags: { drainTimeMs: 1000, parentShutdownTimeMs: 2000 } });
    const parent = await envoy.startLive(0);
    using _held = await hold(envoy.listenPort);
    await envoy.startLive(1);
    await until("the parent's is counted", async () => (await envoy.admin.connections(envoy.plan.admin))?.active === 1);
    deepStrictEqual(await parent.exit, { code: 0 });
    await until(
      "it is gone with its parent",
      async () => (await envoy.admin.connections(envoy.plan.admin))?.active === 0,
    );
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: failing health checks leaves everything open`, async () => {
    await using envoy = new RealEnvoy(version);
    await envoy.startLive(0);
    const { admin } = envoy.plan;
    deepStrictEqual(await envoy.admin.drain(admin, "fail_health"), {
      ok: true,
      detail: "POST /healthcheck/fail: 200 OK",
    });
    const answer = await envoy.admin.identity(admin);
    strictEqual(answer.kind === "answered" ? answer.identity.state : answer.detail, "DRAINING");
    // Answered, and closed by its `connection: close`.
    using _connection = await hold(envoy.listenPort);
    strictEqual((await envoy.admin.connections(admin))?.total, 1);
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: over a unix socket, before, in and after its life`, async () => {
    await using envoy = new RealEnvoy(version, { adminOnUnix: true });
    const why = async () => {
      const answer = await envoy.admin.identity(envoy.plan.admin);
      return answer.kind === "silent" ? answer.why : answer.identity.epoch;
    };
    strictEqual(await why(), "refused");
    const child = await envoy.startLive(0);
    strictEqual(await why(), 0);
    child.signal("SIGKILL");
    await child.exit;
    strictEqual(await why(), "refused");
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: a stopped Envoy is a timeout, a dead one refused`, async () => {
    await using envoy = new RealEnvoy(version);
    const child = await envoy.startLive(0);
    const admin = new EnvoyAdmin({ timeoutMs: 150 });
    const why = async () => {
      const answer = await admin.identity(envoy.plan.admin);
      return answer.kind === "silent" ? answer.why : "answered";
    };
    Deno.kill(child.pid, "SIGSTOP");
    strictEqual(await why(), "timeout");
    strictEqual(await admin.inventory(envoy.plan.admin), undefined);
    strictEqual(await admin.connections(envoy.plan.admin), undefined);
    Deno.kill(child.pid, "SIGCONT");
    await until("it answers again", async () => await why() === "answered");
    child.signal("SIGKILL");
    await child.exit;
    strictEqual(await why(), "refused");
    match(
      (await admin.drain(envoy.plan.admin, "listeners")).detail,
      /^POST \/drain_listeners\?graceful of .*: connection refused$/,
    );
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: a control plane that can't be reached is disconnected`, async () => {
    await using envoy = new RealEnvoy(version, { xds: { kind: "ads", port: freePort(), initialFetchTimeoutMs: 200 } });
    await envoy.startLive(0);
    deepStrictEqual(await envoy.admin.inventory(envoy.plan.admin), {
      controlPlaneConnected: false,
      listeners: 1,
      clusters: 1,
    });
  });

  Deno.test(`EnvoyAdmin, Envoy ${version}: what waits for its control plane is not LIVE`, async () => {
    const port = freePort();
    await using _silent = blackHole(port);
    await using envoy = new RealEnvoy(version, { xds: { kind: "ads", port, initialFetchTimeoutMs: 0 } });
    const child = envoy.start(0);
    await until("it is initialising", async () => {
      const answer = await envoy.admin.identity(envoy.plan.admin);
      return answer.kind === "answered" && answer.identity.state === "PRE_INITIALIZING";
    });
    child.signal("SIGKILL");
    await child.exit;
  });
}
