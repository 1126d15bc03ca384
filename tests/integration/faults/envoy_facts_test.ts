// Owns: what real Envoys do that the handling of failed successors is built on, on each version. Must not: start epochd.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { domainSockets, freeBaseId, removeSegment, segmentFlags } from "../../support/base_ids.ts";
import { writeBootstrap } from "../../support/bootstrap.ts";
import { type BareEnvoy, ENVOY_VERSIONS, type EnvoyVersion, spawnEnvoy } from "../../support/envoys.ts";
import { fetchOnce } from "../../support/http_client.ts";
import { freePorts } from "../../support/ports.ts";
import { processFacts } from "../../support/procfs.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";
import { blackHole } from "../../support/xds.ts";

interface Pair extends AsyncDisposable {
  readonly parent: BareEnvoy;
  readonly child: BareEnvoy;
  readonly admin: { readonly port: number };
  answers(): Promise<number>;
}

/** A parent that serves, and a child that has attached and waits for xDS. */
async function initialisingChild(version: EnvoyVersion, initialFetchTimeoutMs: number): Promise<Pair> {
  await using stack = new AsyncDisposableStack();
  const scratch = stack.use(tempDir());
  const [listenPort, adminPort, holePort] = freePorts(3) as [number, number, number];
  stack.use(blackHole(holePort));
  const baseId = freeBaseId();
  stack.defer(() => removeSegment(baseId));
  const base = { listenPort, adminPort };
  const admin = { port: adminPort };
  const good = writeBootstrap(scratch.at("good.yaml"), base);
  const waiting = writeBootstrap(scratch.at("waiting.yaml"), {
    ...base,
    xds: { kind: "ads", port: holePort, initialFetchTimeoutMs },
  });
  const common = { version, baseId, parentShutdownTimeS: 60, extraArguments: ["--skip-hot-restart-on-no-parent"] };
  const parent = stack.use(spawnEnvoy({ ...common, bootstrapPath: good }));
  await parent.untilLive(admin);
  const child = stack.use(spawnEnvoy({ ...common, bootstrapPath: waiting, epoch: 1 }));
  await until("the child has the admin", async () => (await serverInfo(admin)).epoch === 1);
  const all = stack.move();
  return {
    parent,
    child,
    admin,
    answers: async () => (await fetchOnce({ port: listenPort }, { path: "/direct" })).status,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

for (const version of ENVOY_VERSIONS) {
  Deno.test(`Envoy ${version}: SIGTERM to a child that has attached ends the serving parent with it`, async () => {
    await using pair = await initialisingChild(version, 0);
    pair.child.kill("SIGTERM");
    await pair.child.exit;
    assert.equal((await within("the end of the parent", pair.parent.exit)).code, 0);
    await assert.rejects(pair.answers(), /refused/);
  });

  Deno.test(`Envoy ${version}: SIGKILL of a child that has attached leaves the parent serving`, async () => {
    await using pair = await initialisingChild(version, 0);
    pair.child.kill("SIGKILL");
    await pair.child.exit;
    assert.equal(await pair.answers(), 200);
  });
}

for (const version of ENVOY_VERSIONS) {
  Deno.test(`Envoy ${version}: INITIALIZING is set before the parent socket is there, and clear from LIVE on, in epoch 0 and after it`, async () => {
    await using scratch = tempDir();
    const [listenPort, adminPort] = freePorts(2) as [number, number];
    const baseId = freeBaseId();
    const bootstrapPath = writeBootstrap(scratch.at("envoy.yaml"), { listenPort, adminPort });
    await using first = spawnEnvoy({ version, baseId, bootstrapPath, parentShutdownTimeS: 60 });
    assert.deepEqual(await flagsWithSocket(baseId, 0), [1n, 0n]);
    await first.untilLive({ port: adminPort });
    await using second = spawnEnvoy({ version, baseId, bootstrapPath, epoch: 1, parentShutdownTimeS: 60 });
    assert.deepEqual(await flagsWithSocket(baseId, 1), [1n, 0n]);
    await second.untilLive({ port: adminPort });
  });
}

/** What the flags were, one after the other, while this epoch's parent socket was there; up to the first time that they are clear. */
async function flagsWithSocket(baseId: number, epoch: number): Promise<bigint[]> {
  const seen: bigint[] = [];
  const name = `envoy_domain_socket_parent_${baseId * 10 + epoch}`;
  await until("the flags are clear", () => {
    const untilMs = performance.now() + 20;
    // As fast as it goes, and what comes first in Envoy is read last.
    while (performance.now() < untilMs && seen.at(-1) !== 0n) {
      if (!domainSockets(baseId).includes(name)) continue;
      const flags = segmentFlags(baseId);
      if (flags !== seen.at(-1)) seen.push(flags);
    }
    return seen.at(-1) === 0n;
  });
  return seen;
}

// Side by side: each takes the ten seconds that Envoy tries for.
Deno.test("Envoy of each version: a child that has attached aborts where its parent is killed, and never serves", async () => {
  await Promise.all(ENVOY_VERSIONS.map(async (version) => {
    await using pair = await initialisingChild(version, 1_000);
    pair.parent.kill("SIGKILL");
    await pair.parent.exit;
    const { signal } = await within(`the end of the child ${version}`, pair.child.exit, 60_000);
    assert.equal(signal, "SIGABRT");
    assert.match(pair.child.log(), /sendmsg\(\) failed.*errno 111/);
  }));
});

Deno.test("Envoy of each version: a parent that wakes to a question of a dead child aborts after ten seconds", async () => {
  await Promise.all(ENVOY_VERSIONS.map(async (version) => {
    await using scratch = tempDir();
    const [listenPort, adminPort] = freePorts(2) as [number, number];
    const baseId = freeBaseId();
    const common = {
      version,
      baseId,
      bootstrapPath: writeBootstrap(scratch.at("envoy.yaml"), { listenPort, adminPort }),
    };
    await using parent = spawnEnvoy(common);
    await parent.untilLive({ port: adminPort });
    Deno.kill(parent.pid, "SIGSTOP");
    {
      await using child = spawnEnvoy({ ...common, epoch: 1 });
      await until("the child asks its parent, which is the end of what it logs", () => {
        const stalled = processFacts(child.pid)?.state === "S";
        return stalled && child.log().includes("response trailer map");
      });
    }
    Deno.kill(parent.pid, "SIGCONT");
    const { signal } = await within(`the end of the parent ${version}`, parent.exit, 60_000);
    assert.equal(signal, "SIGABRT");
    assert.match(parent.log(), /sendmsg\(\) failed.*errno 111/);
    removeSegment(baseId);
  }));
});

/** A child that serves, and its parent, which drains. */
async function drainingParent(version: EnvoyVersion, parentShutdownTimeS: number): Promise<Omit<Pair, "answers">> {
  await using stack = new AsyncDisposableStack();
  const scratch = stack.use(tempDir());
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const baseId = freeBaseId();
  stack.defer(() => removeSegment(baseId));
  const bootstrapPath = writeBootstrap(scratch.at("envoy.yaml"), { listenPort, adminPort });
  const admin = { port: adminPort };
  const common = { version, baseId, bootstrapPath, parentShutdownTimeS };
  const parent = stack.use(spawnEnvoy(common));
  await parent.untilLive(admin);
  const child = stack.use(spawnEnvoy({ ...common, epoch: 1 }));
  await child.untilLive(admin);
  const all = stack.move();
  return { parent, child, admin, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

Deno.test("Envoy of each version: a child that serves aborts ten seconds after its draining parent was killed", async () => {
  await Promise.all(ENVOY_VERSIONS.map(async (version) => {
    await using pair = await drainingParent(version, 60);
    pair.parent.kill("SIGKILL");
    const { signal } = await within(`the end of the child ${version}`, pair.child.exit, 60_000);
    assert.equal(signal, "SIGABRT");
    assert.match(pair.child.log(), /sendmsg\(\) failed.*errno 111/);
  }));
});

Deno.test("Envoy of each version: SIGTERM ends a draining parent at once, with exit code 0", async () => {
  await Promise.all(ENVOY_VERSIONS.map(async (version) => {
    await using pair = await drainingParent(version, 60);
    pair.parent.kill("SIGTERM");
    assert.equal((await within("its end", pair.parent.exit)).code, 0);
  }));
});

Deno.test("Envoy of each version: has four hot restart sockets from its start on, which tells it from a stand-in", async () => {
  await Promise.all(ENVOY_VERSIONS.map(async (version) => {
    await using scratch = tempDir();
    const [listenPort, adminPort] = freePorts(2) as [number, number];
    const baseId = freeBaseId();
    const bootstrapPath = writeBootstrap(scratch.at("envoy.yaml"), { listenPort, adminPort });
    await using envoy = spawnEnvoy({ version, baseId, bootstrapPath });
    const seen = await until("its parent socket", () => {
      const names = domainSockets(baseId);
      return names.some((name) => name.includes("domain_socket_parent")) && names;
    }, { everyMs: 1 });
    assert.ok(seen.some((name) => name.includes("domain_socket_child")), seen.join());
    await envoy.untilLive({ port: adminPort });
    assert.equal(domainSockets(baseId).length, 4);
  }));
});
