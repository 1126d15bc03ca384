// Owns: the API over TCP beside real Envoys: who gets in, whom it does not disturb. On a runtime that lets in clients without a
// certificate: that it refuses to listen at all.
import assert from "node:assert/strict";
import { runEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { until, within } from "../support/until.ts";
import { api } from "./config_scene.ts";
import { assertUnhurt, eventsOf, handoff, scene } from "./scene.ts";

const [, runtime = ""] = /\(deno (\S+)\)/.exec((await runEpochd(["--version"])).stdout) ?? [];
const [major = 0, minor = 0, patch = 0] = runtime.split(".").map(Number);
const mayListen = major * 1e6 + minor * 1e3 + patch >= 2_007_014;

function onNewRuntime(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: !mayListen, fn });
}

Deno.test({
  name: `api.listen is refused on Deno ${runtime}, by its name and the least one, and nothing starts`,
  ignore: mayListen,
  fn: async () => {
    await using here = scene();
    const { code, stderr } = await runEpochd([
      ...["run", "--envoy-config", here.bootstrapPath, "--envoy-path", "/bin/true"],
      ...["--api-listen", "127.0.0.1:9", "--api-keys-file", "/dev/null"],
    ]);
    assert.equal(code, 2);
    assert.match(
      stderr,
      new RegExp(`--api-listen 127\\.0\\.0\\.1:9: expected Deno 2\\.7\\.14 or newer .*this is ${runtime}`),
    );
  },
});

async function statusOf(port: number, key: string): Promise<number | undefined> {
  try {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const login = key === "" ? "" : `authorization: Bearer ${key}\r\n`;
    await connection.write(new TextEncoder().encode(`GET /v1/status HTTP/1.1\r\nhost: x\r\n${login}\r\n`));
    const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(await new Response(connection.readable).text()) ?? [];
    return status === undefined ? undefined : Number(status);
  } catch {
    return undefined;
  }
}

async function makeKey(file: string): Promise<string> {
  const { code, stdout, stderr } = await runEpochd(["key", "create", "test", "--role", "read", "--file", file]);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

onNewRuntime(
  "silent, half-open and garbage clients on socket and TCP delay neither a handoff nor a signal",
  async () => {
    await using here = scene();
    const [port] = freePorts(1) as [number];
    const keys = here.directory.at("keys");
    const key = await makeKey(keys);
    const epochd = await here.start({
      drainTimeMs: 1_000,
      parentShutdownTimeMs: 2_000,
      extraArguments: ["--api-listen", `127.0.0.1:${port}`, "--api-keys-file", keys],
    });
    await epochd.waitForEvent("api_listening", ({ path }) => String(path).endsWith(`:${port}`));
    const traffic = here.traffic();
    const noise = [
      "",
      "GET /v1/status HTT",
      "PUT /v1/config HTTP/1.1\r\ncontent-length: 100000\r\n\r\n{",
      "\x00\xff\x16\x03garbage\r\n\r\n",
      "GET /v1/events HTTP/1.1\r\n\r\n",
    ];
    const open: Deno.Conn[] = [];
    for (let i = 0; i < 300; i++) {
      const to = i % 2 === 0
        ? Deno.connect({ hostname: "127.0.0.1", port })
        : Deno.connect({ transport: "unix", path: epochd.apiSocket });
      const connection = await (to as Promise<Deno.Conn>).catch(() => undefined);
      if (connection === undefined) continue;
      open.push(connection);
      await connection.write(new TextEncoder().encode(noise[i % noise.length])).catch(() => {});
    }
    epochd.signal("SIGHUP");
    await handoff(epochd, 1, "done");
    assertUnhurt(await traffic.stop());
    await until("a client with a key gets in again", async () => await statusOf(port, key) === 200, {
      timeoutMs: 20_000,
    });
    assert.equal(await statusOf(port, ""), 401);
    assert.deepEqual(eventsOf(epochd, "bug"), []);
    epochd.signal("SIGTERM");
    assert.equal((await within("the end", epochd.exit, 15_000)).code, 0);
    for (const connection of open) connection.close();
  },
);

onNewRuntime(
  "of two supervisors that want one port, the newcomer is ready all the same and gets it when the other ends",
  async () => {
    await using first = scene();
    await using second = scene();
    const [port] = freePorts(1) as [number];
    const keys = first.directory.at("keys");
    const key = await makeKey(keys);
    const extraArguments = ["--api-listen", `127.0.0.1:${port}`, "--api-keys-file", keys];
    const old = await first.start({ extraArguments });
    await old.waitForEvent("api_listening", ({ path }) => String(path).endsWith(`:${port}`));
    const fresh = await second.start({ extraArguments });
    await fresh.waitForEvent("api_waits");
    await fresh.waitForEvent("ready_changed", ({ ready }) => ready === true);
    assert.equal((await api(fresh, "GET", "/readyz")).status, 200);
    assert.equal(await statusOf(port, key), 200);
    old.signal("SIGTERM");
    assert.equal((await within("the end", old.exit, 15_000)).code, 0);
    await fresh.waitForEvent("api_listening", ({ path }) => String(path).endsWith(`:${port}`));
    assert.equal(await statusOf(port, key), 200);
  },
);

onNewRuntime("what asks over TCP is in the audit log by its key, and so is who is not let in", async () => {
  await using here = scene();
  const [port] = freePorts(1) as [number];
  const keys = here.directory.at("keys");
  const key = await makeKey(keys);
  const epochd = await here.start({
    extraArguments: ["--api-listen", `127.0.0.1:${port}`, "--api-keys-file", keys],
  });
  await epochd.waitForEvent("api_credentials_read");
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const lines = ["POST /v1/services/envoy/restart HTTP/1.1", "host: x", `authorization: Bearer ${key}`];
  await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`));
  assert.match(await new Response(connection.readable).text(), /^HTTP\/1\.1 403/);
  await epochd.waitForEvent("api_audit", ({ who, status }) => who === "key test from 127.0.0.1" && status === 403);
  assert.equal(await statusOf(port, `${key}x`), 401);
  await epochd.waitForEvent("api_audit", ({ who }) => who === "an unknown key from 127.0.0.1");
  assert.ok(!JSON.stringify(epochd.log.events).includes(key.slice(-30)), "no key may be in the log");
});
