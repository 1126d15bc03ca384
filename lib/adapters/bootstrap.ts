// Owns: what epochd reads out of a bootstrap's text: where admin listens, which files and which control plane it names.
// Must not: open files, or judge the rest.

import type { AdminAddress } from "../core/epoch.ts";
import { readQuickly } from "./quick_yaml.ts";

export type Bootstrap =
  | {
    readonly kind: "parsed";
    readonly admin: AdminFound;
    readonly namedFiles: readonly string[];
    /** Clusters by which the control plane is reached over gRPC. */
    readonly controlPlaneClusters: readonly string[];
  }
  /** Text or binary protobuf: Envoy reads it, epochd doesn't. */
  | { readonly kind: "opaque"; readonly why: string }
  | { readonly kind: "malformed"; readonly problem: string };

export type AdminFound =
  | { readonly kind: "found"; readonly address: AdminAddress }
  | { readonly kind: "missing"; readonly why: string };

type Tree = Readonly<Record<string, unknown>>;

/** Envoy goes by the file's extension (1.38 to 1.40): .yaml and .yml are YAML, .pb and .pb_text protobuf, all others JSON. */
export function parseBootstrap(text: string, path: string, configYaml?: string): Bootstrap {
  const name = path.toLowerCase();
  if (name.endsWith(".pb") || name.endsWith(".pb_text")) {
    return { kind: "opaque", why: `epochd reads YAML and JSON, not ${name.slice(name.lastIndexOf("."))}` };
  }
  const yaml = name.endsWith(".yaml") || name.endsWith(".yml");
  const file = parseTree(text, yaml);
  if (typeof file === "string") return { kind: "malformed", problem: file };
  const extra = configYaml === undefined ? {} : parseTree(configYaml, true);
  if (typeof extra === "string") return { kind: "malformed", problem: `--config-yaml: ${extra}` };
  // Envoy merges --config-yaml over the file, field by field.
  const overridden = findAdmin(extra);
  const admin = overridden.kind === "found" ? overridden : findAdmin(file);
  return {
    kind: "parsed",
    admin,
    namedFiles: [...new Set([...filesIn(file), ...filesIn(extra)])],
    controlPlaneClusters: [
      ...new Set([file, extra].flatMap((tree) => [...grpcClusters(field(tree, "dynamic_resources"))])),
    ],
  };
}

function parseTree(text: string, yaml: boolean): Tree | string {
  if (!yaml) {
    try {
      return asTree(JSON.parse(text)) ?? "not a JSON object";
    } catch (error) {
      return `not JSON, as its extension wants it: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  // Envoy is the judge: what it takes (equal keys, further documents) is not refused here.
  const read = readQuickly(text);
  if (read.kind === "refused") return `not YAML: ${read.problem}`;
  return asTree(read.value) ?? "not a YAML map";
}

function findAdmin(bootstrap: Tree): AdminFound {
  const missing = (why: string): AdminFound => ({ kind: "missing", why });
  const admin = asTree(bootstrap.admin);
  if (admin === undefined) return missing("it has no admin");
  const address = asTree(admin.address);
  if (address === undefined) return missing("its admin has no address");
  const pipe = asTree(address.pipe);
  if (pipe !== undefined) {
    if (typeof pipe.path !== "string" || pipe.path === "") return missing("its admin's pipe has no path");
    return pipe.path.startsWith("@")
      ? missing(`its admin listens on the abstract socket ${pipe.path}, which epochd can't reach`)
      : { kind: "found", address: { kind: "unix", path: pipe.path } };
  }
  const socket = asTree(field(address, "socket_address"));
  const [host, port] = [socket?.address, Number(field(socket ?? {}, "port_value") ?? 0)];
  if (typeof host !== "string" || host === "") {
    return missing("its admin's address has neither socket_address.address nor pipe.path");
  }
  if (!(Number.isInteger(port) && port >= 1 && port <= 65535)) {
    return missing(`its admin's port_value is ${port}, a port of its own each time`);
  }
  return { kind: "found", address: { kind: "tcp", host: reachable(host), port } };
}

/** Where a listener on all addresses is reached. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return /^[0:]+$/.test(host) && host.includes(":") ? "::1" : host;
}

/** Names of fields whose text is a file that Envoy reads. Sockets and files that Envoy writes are not among them. */
const FILE_KEYS = new Set([
  "filename",
  "path",
  "file_path",
  "plugin_path",
  "dso_path",
  "library_path",
  "local_rate_limit_path",
]);
const WRITTEN = new Set(["access_log", "accessLog", "admin", "pipe", "stats_sinks", "statsSinks"]);

/** `seen`: what aliases share is looked at once, or a few of them would take for ever. */
function* filesIn(tree: unknown, seen = new Set<unknown>()): Generator<string> {
  if (isSeen(tree, seen)) return;
  if (Array.isArray(tree)) {
    for (const item of tree) yield* filesIn(item, seen);
    return;
  }
  for (const [key, value] of Object.entries(asTree(tree) ?? {})) {
    if (WRITTEN.has(key)) continue;
    if (typeof value !== "string") yield* filesIn(value, seen);
    else if (FILE_KEYS.has(key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))) yield value;
  }
}

/** Listeners, clusters and ADS may each have a service of their own. */
function* grpcClusters(tree: unknown, seen = new Set<unknown>()): Generator<string> {
  if (isSeen(tree, seen)) return;
  if (Array.isArray(tree)) {
    for (const item of tree) yield* grpcClusters(item, seen);
    return;
  }
  const fields = asTree(tree) ?? {};
  const name = field(asTree(field(fields, "envoy_grpc")) ?? {}, "cluster_name");
  if (typeof name === "string") yield name;
  for (const value of Object.values(fields)) yield* grpcClusters(value, seen);
}

function isSeen(tree: unknown, seen: Set<unknown>): boolean {
  if (typeof tree !== "object" || tree === null) return false;
  const before = seen.size;
  return seen.add(tree).size === before;
}

/** Proto JSON takes both spellings of a name. */
function field(tree: Tree, name: string): unknown {
  return tree[name] ?? tree[name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
}

function asTree(value: unknown): Tree | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Tree : undefined;
}
