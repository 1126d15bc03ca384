import assert from "node:assert/strict";
import { checkBootstrap } from "../../../lib/doctor/bootstrap.ts";
import type { Finding } from "../../../lib/doctor/finding.ts";
import { machine } from "./machine.ts";

async function findingsOf(bootstrap: unknown, version = "x/1.39.3/y", config: Record<string, unknown> = {}) {
  await using here = machine();
  const path = here.dir.write("envoy.json", JSON.stringify(bootstrap));
  const patient = here.running({}, { envoy_config: path, ...config });
  const identity = { ...patient.serving!.identity!, version };
  const findings = await checkBootstrap({ ...patient, serving: { ...patient.serving!, identity } });
  return (check: string): Finding => findings.find((finding) => finding.check === check) ?? assert.fail(check);
}

const address = (protocol: string) => ({ socket_address: { protocol, address: "127.0.0.1", port_value: 53 } });
const raw = { static_resources: { listeners: [{ name: "dns", address: address("UDP") }] } };

Deno.test("doctor + UDP without QUIC is dark where the predecessor is older than 1.40, whatever the successor is", async () => {
  const old = (await findingsOf(raw))("udp");
  assert.equal(old.verdict, "fail");
  assert.match(
    old.found,
    /dns: with Envoy 1\.39\.3 as the predecessor it is dark from LIVE until that one ends \(parent_shutdown_time 45s\)/,
  );
  assert.equal((await findingsOf(raw, "x/1.40.0/y"))("udp").verdict, "ok");
  assert.equal((await findingsOf(raw, "x/2.1.0/y"))("udp").verdict, "ok");
});

Deno.test("doctor + HTTP/3 and TCP go on, dynamic listeners are said to be unseen, both spellings count", async () => {
  const quic = { name: "h3", address: address("UDP"), udpListenerConfig: { quicOptions: {} } };
  const found =
    (await findingsOf({ staticResources: { listeners: [quic, { name: "tcp", address: address("TCP") }] } }))("udp");
  assert.deepEqual([found.verdict, found.found], ["ok", "1 HTTP/3 listener, which go on"]);
  const camel = {
    staticResources: {
      listeners: [{ address: { socketAddress: { protocol: "UDP", address: "::1", portValue: 53 } } }],
    },
  };
  assert.match((await findingsOf(camel))("udp").found, /::1:53/);
  const lds = (await findingsOf({ dynamic_resources: { lds_config: { ads: {}, initial_fetch_timeout: "0s" } } }))(
    "udp",
  );
  assert.match(lds.found, /those of a control plane are not looked at/);
});

Deno.test("doctor + a control plane that is not waited for is a warning with the field, its value and what to set", async () => {
  const source = { ads: {}, resource_api_version: "V3" };
  const dynamic = (more: Record<string, unknown>) => ({
    dynamic_resources: {
      ads_config: { api_type: "GRPC" },
      cds_config: { ...source, ...more },
      lds_config: { ...source, ...more },
    },
  });
  const byDefault = (await findingsOf(dynamic({})))("control_plane");
  assert.equal(byDefault.verdict, "warn");
  assert.match(byDefault.found, /initial_fetch_timeout of cds_config, lds_config is 15s \(default\)/);
  assert.match(byDefault.found, /after 30s a successor is LIVE without/);
  const impatient = (await findingsOf(dynamic({}), "x/1.40.0/y", { live_timeout: "20s" }))("control_plane");
  assert.deepEqual([impatient.verdict, /live_timeout 20s gives a successor up/.test(impatient.found)], ["ok", true]);
  assert.match(byDefault.todo ?? "", /initial_fetch_timeout: 0s/);
  assert.match((await findingsOf(dynamic({ initial_fetch_timeout: "5s" })))("control_plane").found, /is 5s/);
  assert.equal((await findingsOf(dynamic({ initial_fetch_timeout: "0s" })))("control_plane").verdict, "ok");
  assert.equal((await findingsOf(dynamic({ initialFetchTimeout: "0s" })))("control_plane").verdict, "ok");
  assert.equal((await findingsOf({}))("control_plane").found, "everything is static");
  const files = { dynamic_resources: { cds_config: { path_config_source: { path: "/x" } } } };
  assert.equal((await findingsOf(files))("control_plane").found, "everything is static");
});

Deno.test("doctor + --config-yaml counts, a bootstrap that can't be read is left to preflight", async () => {
  const more = { envoy_args: ["--config-yaml", JSON.stringify(raw)] };
  assert.equal((await findingsOf({}, "x/1.39.3/y", more))("udp").verdict, "fail");
  await using here = machine();
  const findings = await checkBootstrap(here.running({}, { envoy_config: here.dir.at("absent.yaml") }));
  assert.deepEqual(findings.map(({ verdict }) => verdict), ["unknown", "unknown"]);
});
