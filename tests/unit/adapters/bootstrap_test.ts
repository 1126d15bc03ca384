import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { type AdminFound, type Bootstrap, parseBootstrap } from "../../../lib/adapters/bootstrap.ts";

function adminOf(bootstrap: Bootstrap): AdminFound {
  if (bootstrap.kind !== "parsed") throw new Error(JSON.stringify(bootstrap));
  return bootstrap.admin;
}

function addressOf(text: string, path?: string, configYaml?: string) {
  const admin = adminOf(parseBootstrap(text, path ?? "envoy.yaml", configYaml));
  return admin.kind === "found" ? admin.address : admin.why;
}

const socket = (address: string, port: string) =>
  `admin: {address: {socket_address: {address: "${address}", port_value: ${port}}}}`;

Deno.test("parseBootstrap: admin on TCP, in YAML and in JSON, in both spellings of proto JSON", () => {
  const expected = { kind: "tcp", host: "127.0.0.1", port: 9901 };
  deepStrictEqual(addressOf(socket("127.0.0.1", "9901")), expected);
  deepStrictEqual(addressOf(socket("127.0.0.1", '"9901"')), expected);
  const camel = { admin: { address: { socketAddress: { address: "127.0.0.1", portValue: 9901 } } } };
  deepStrictEqual(addressOf(JSON.stringify(camel), "envoy.json"), expected);
  deepStrictEqual(addressOf(JSON.stringify(camel), "envoy.yaml"), expected);
});

Deno.test("parseBootstrap: admin on a unix socket", () => {
  deepStrictEqual(addressOf("admin: {address: {pipe: {path: /run/a.sock}}}"), { kind: "unix", path: "/run/a.sock" });
});

Deno.test("parseBootstrap: an address for all interfaces is reached by loopback", () => {
  deepStrictEqual(addressOf(socket("0.0.0.0", "1")), { kind: "tcp", host: "127.0.0.1", port: 1 });
  deepStrictEqual(addressOf(socket("::", "1")), { kind: "tcp", host: "::1", port: 1 });
  deepStrictEqual(addressOf(socket("0:0:0:0:0:0:0:0", "1")), { kind: "tcp", host: "::1", port: 1 });
  deepStrictEqual(addressOf(socket("::1", "1")), { kind: "tcp", host: "::1", port: 1 });
});

Deno.test("parseBootstrap: says why there is no admin address", () => {
  strictEqual(addressOf("static_resources: {}"), "it has no admin");
  strictEqual(addressOf("admin: {}"), "its admin has no address");
  match(String(addressOf(socket("127.0.0.1", "0"))), /port_value is 0/);
  match(String(addressOf("admin: {address: {socket_address: {address: 127.0.0.1}}}")), /port_value is 0/);
  match(String(addressOf(socket("127.0.0.1", "99999"))), /port_value is 99999/);
  match(String(addressOf('admin: {address: {pipe: {path: "@abstract"}}}')), /abstract socket @abstract/);
  match(String(addressOf("admin: {address: {envoy_internal_address: {}}}")), /neither/);
});

Deno.test("parseBootstrap: --config-yaml wins over the file, as in Envoy", () => {
  deepStrictEqual(addressOf(socket("127.0.0.1", "1"), "a.yaml", socket("127.0.0.1", "2")), {
    kind: "tcp",
    host: "127.0.0.1",
    port: 2,
  });
  deepStrictEqual(addressOf(socket("127.0.0.1", "1"), "a.yaml", "node: {id: a}"), {
    kind: "tcp",
    host: "127.0.0.1",
    port: 1,
  });
});

Deno.test("parseBootstrap: goes by the extension, as Envoy does", () => {
  const yaml = socket("127.0.0.1", "1");
  for (const path of ["a.yaml", "a.yml", "a.YAML"]) strictEqual(parseBootstrap(yaml, path).kind, "parsed", path);
  for (const path of ["a.json", "a.conf", "a"]) strictEqual(parseBootstrap(yaml, path).kind, "malformed", path);
  strictEqual(parseBootstrap("admin {}", "a.pb_text").kind, "opaque");
  strictEqual(parseBootstrap("", "a.pb").kind, "opaque");
});

Deno.test("parseBootstrap: one line about what is malformed", () => {
  for (const text of ["admin: {address\n", "a: b: c", "\tadmin: 1", "just text", "- 1"]) {
    const result = parseBootstrap(text, "a.yaml");
    strictEqual(result.kind, "malformed", text);
    if (result.kind === "malformed") match(result.problem, /^not (YAML|a YAML map).*$/);
  }
  const json = parseBootstrap("{", "a.json");
  if (json.kind !== "malformed") throw new Error("taken");
  match(json.problem, /not JSON/);
  match(JSON.stringify(parseBootstrap("{}", "a.json", "a: b: c")), /--config-yaml: not YAML/);
});

Deno.test("parseBootstrap: what Envoy may take is left to Envoy", () => {
  strictEqual(parseBootstrap(`${socket("127.0.0.1", "1")}\nnode: {id: a}\nnode: {id: b}`, "a.yaml").kind, "parsed");
  const anchors = `node: &n {id: a}\nlist: [${Array(200).fill("*n").join(",")}]\n${socket("127.0.0.1", "1")}`;
  strictEqual(parseBootstrap(anchors, "a.yaml").kind, "parsed");
});

Deno.test("parseBootstrap: the clusters of the control plane, in both spellings, and no other gRPC service's", () => {
  const text = `
admin: {address: {pipe: {path: /run/admin.sock}}}
dynamic_resources:
  ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: ads}}]}
  lds_config: {api_config_source: {grpc_services: {envoyGrpc: {clusterName: lds}}}}
  cds_config: {ads: {}}
stats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: metrics}}}}]
`;
  const parsed = parseBootstrap(
    text,
    "a.yaml",
    "dynamicResources: {adsConfig: {grpcServices: [{envoyGrpc: {clusterName: ads}}]}}",
  );
  if (parsed.kind !== "parsed") throw new Error(JSON.stringify(parsed));
  deepStrictEqual(parsed.controlPlaneClusters, ["ads", "lds"]);
});

Deno.test("parseBootstrap: the files that Envoy reads, and none that it writes or listens on", () => {
  const text = `
admin: {access_log: [{typed_config: {path: /var/log/admin}}], address: {pipe: {path: /run/admin.sock}}}
dynamic_resources: {cds_config: {path_config_source: {path: /etc/cds.yaml, watched_directory: {path: /etc}}}}
static_resources:
  listeners:
  - address: {pipe: {path: /run/listener.sock}}
    filter_chains:
    - filters: [{typed_config: {access_log: [{typed_config: {path: /var/log/access}}]}}]
      transport_socket: {typed_config: {common_tls_context: {tls_certificates: [
        {certificate_chain: {filename: cert.pem}, private_key: {filename: /etc/key.pem}}, {private_key: {filename: /etc/key.pem}}]}}}
`;
  const parsed = parseBootstrap(text, "a.yaml", "stats_config: {file: {filename: /etc/more}}");
  if (parsed.kind !== "parsed") throw new Error(JSON.stringify(parsed));
  deepStrictEqual([...parsed.namedFiles].sort(), ["/etc", "/etc/cds.yaml", "/etc/key.pem", "/etc/more", "cert.pem"]);
});

Deno.test("parseBootstrap: tags, further documents and YAML's own spellings are left to Envoy", () => {
  const tagged = `!ignore x: 1\nnode: !ignore {id: a}\nlist: !mine [1, !ignore 2]\n${socket("127.0.0.1", "1")}`;
  strictEqual(parseBootstrap(tagged, "a.yaml").kind, "parsed");
  const several = `${socket("127.0.0.1", "1")}\n---\nadmin: {}\n`;
  deepStrictEqual(addressOf(several, "a.yaml"), { kind: "tcp", host: "127.0.0.1", port: 1 });
  const odd = `admin: &a\n  address:\n    socket_address: {address: "127.0.0.1", port_value: 0x26AD}\ncopy: *a\n`;
  deepStrictEqual(addressOf(odd, "a.yaml"), { kind: "tcp", host: "127.0.0.1", port: 9901 });
});

Deno.test("parseBootstrap: aliases of aliases, circles and depths take no time and end nothing", () => {
  const bomb = ["a0: &a0 {path: /etc/a}"];
  for (let level = 1; level <= 60; level++) {
    const one = `*a${level - 1}`;
    bomb.push(`a${level}: &a${level} [${Array(10).fill(one).join(", ")}]`);
  }
  const parsed = parseBootstrap(`${bomb.join("\n")}\n${socket("127.0.0.1", "1")}`, "a.yaml");
  if (parsed.kind !== "parsed") throw new Error(JSON.stringify(parsed));
  deepStrictEqual(parsed.namedFiles, ["/etc/a"]);
  strictEqual(parseBootstrap(`dynamic_resources: &a {b: [*a]}\n${socket("127.0.0.1", "1")}`, "a.yaml").kind, "parsed");
  strictEqual(parseBootstrap("[".repeat(200_000), "a.yaml").kind, "malformed");
});
