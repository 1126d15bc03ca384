// Owns: what in a bootstrap breaks a hot restart that Envoy itself accepts: raw UDP listeners, control planes that are not waited for, a
// missing admin. Must not: validate the rest (preflight does).

import { flagValue } from "../adapters/envoy_args.ts";
import { runBounded } from "../adapters/bounded_run.ts";
import { readQuickly } from "../adapters/quick_yaml.ts";
import { slotsOf } from "../adapters/slots.ts";
import { formatDuration } from "../config/duration.ts";
import { envoyVersion } from "../observe/words.ts";
import { fail, type Finding, type Found, ok, unknown, warn } from "./finding.ts";
import type { Patient } from "./patient.ts";

type Tree = Readonly<Record<string, unknown>>;

export async function checkBootstrap({ config, serving }: Patient): Promise<readonly Finding[]> {
  const trees = readTrees(config.envoyConfig, flagValue(config.envoyArgs, "--config-yaml"));
  if (trees === undefined) {
    const not = unknown(`${config.envoyConfig} can't be read here; see preflight`);
    return [{ check: "udp", ...not }, { check: "control_plane", ...not }];
  }
  const raw = rawUdp(trees);
  // The parent of the next handoff: what serves, or what would be started.
  const version = raw.length === 0
    ? undefined
    : serving?.identity?.version ?? await versionOf(await executableOf(config));
  return [
    { check: "udp", ...udp(trees, raw, version, config.parentShutdownTimeMs) },
    { check: "control_plane", ...controlPlane(trees, config.liveTimeoutMs) },
  ];
}

async function executableOf(config: Patient["config"]): Promise<string> {
  const found = await slotsOf(config)?.executable();
  return found?.kind === "found" ? found.path : config.envoyPath;
}

async function versionOf(envoyPath: string): Promise<string | undefined> {
  const ran = await runBounded(envoyPath, ["--version"], { timeoutMs: 5_000, signal: new AbortController().signal });
  return ran.kind === "ended" ? /version: (\S+)/.exec(ran.stdout)?.[1] : undefined;
}

function readTrees(path: string, more: string | undefined): readonly Tree[] | undefined {
  try {
    const texts = [Deno.readTextFileSync(path), ...(more === undefined ? [] : [more])];
    return texts.map((text) => {
      const read = readQuickly(text);
      return (read.kind === "read" ? asTree(read.value) : undefined) ?? {};
    });
  } catch {
    return undefined;
  }
}

/** Listeners of the bootstrap that speak UDP without QUIC. */
function rawUdp(trees: readonly Tree[]): readonly Tree[] {
  return staticListeners(trees).filter((listener) => isUdp(listener) && !isQuic(listener));
}

function staticListeners(trees: readonly Tree[]): readonly Tree[] {
  return trees.flatMap((tree) => list(field(asTree(field(tree, "static_resources")), "listeners")));
}

/**
 * Measured: where the parent is 1.38.3 or 1.39.3 (whatever the child is), new sessions of a UDP listener without QUIC get no answer from LIVE
 * until the parent has ended, and established ones none from a second later on; with a 1.40.0 as parent not a packet is lost. HTTP/3 goes on
 * in all of them: its packets are handed to the parent.
 */
const unbrokenSince = [1, 40] as const;

function udp(
  trees: readonly Tree[],
  raw: readonly Tree[],
  version: string | undefined,
  parentShutdownTimeMs: number,
): Found {
  const dynamic = trees.some((tree) => field(asTree(field(tree, "dynamic_resources")), "lds_config") !== undefined);
  const unseen = dynamic ? "; those of a control plane are not looked at" : "";
  if (raw.length === 0) {
    const quic = staticListeners(trees).filter(isUdp).length;
    return ok(
      quic === 0 ? `no UDP listener${unseen}` : `${quic} HTTP/3 listener${quic === 1 ? "" : "s"}, which go on${unseen}`,
    );
  }
  const said = `UDP without QUIC: ${raw.map(nameOf).join(", ")}`;
  if (version === undefined) {
    return unknown(`${said}; whether it goes on depends on Envoy's version, which can't be asked${unseen}`);
  }
  const shown = envoyVersion(version);
  if (isSince(shown)) return ok(`${said}: Envoy ${shown} serves it through a handoff${unseen}`);
  return fail(
    `${said}: with Envoy ${shown} as the predecessor it is dark from LIVE until that one ends (parent_shutdown_time ${
      formatDuration(parentShutdownTimeMs)
    })${unseen}`,
    "go to Envoy 1.40 (the handoff to it is still dark), or serve UDP by an Envoy that is not hot restarted",
  );
}

function isSince(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > unbrokenSince[0] || (major === unbrokenSince[0] && minor >= unbrokenSince[1]);
}

function isUdp(listener: Tree): boolean {
  const address = asTree(field(asTree(field(listener, "address")), "socket_address"));
  const protocol = field(address, "protocol");
  return protocol === "UDP" || protocol === 1;
}

function isQuic(listener: Tree): boolean {
  return field(asTree(field(listener, "udp_listener_config")), "quic_options") !== undefined;
}

function nameOf(listener: Tree): string {
  const name = field(listener, "name");
  const address = asTree(field(asTree(field(listener, "address")), "socket_address"));
  return typeof name === "string" ? name : `${field(address, "address")}:${field(address, "port_value")}`;
}

const defaultFetchTimeoutMs = 15_000;

/** A successor that does not wait for its control plane is LIVE without clusters and routes, and answers 404 and 503. */
function controlPlane(trees: readonly Tree[], liveTimeoutMs: number): Found {
  const sources = trees.flatMap((tree) => [...configSources(field(tree, "dynamic_resources"), "dynamic_resources")]);
  if (sources.length === 0) return ok("everything is static");
  const hasty = sources.filter(({ timeoutMs }) => timeoutMs > 0);
  if (hasty.length === 0) {
    const waits = "an epoch is LIVE only with what its control plane gives; the first start waits for it as well";
    return ok(`${namesOf(sources)}: ${waits}`);
  }
  const timeouts = [
    ...new Set(hasty.map(({ timeoutMs, isDefault }) => `${formatDuration(timeoutMs)}${isDefault ? " (default)" : ""}`)),
  ];
  // One after the other, clusters before listeners: two of 2 s make an epoch LIVE after 4 s (1.38.3 and 1.40.0).
  const wholeMs = hasty.reduce((sum, { timeoutMs }) => sum + timeoutMs, 0);
  const said = `initial_fetch_timeout of ${namesOf(hasty)} is ${timeouts.join(" and ")}`;
  if (wholeMs >= liveTimeoutMs) {
    return ok(
      `${said}: live_timeout ${formatDuration(liveTimeoutMs)} gives a successor up before it is LIVE without them`,
    );
  }
  return warn(
    `${said}: after ${formatDuration(wholeMs)} a successor is LIVE without what it waited for`,
    `set initial_fetch_timeout: 0s there: a control plane that is slow then costs the handoff (live_timeout ${
      formatDuration(liveTimeoutMs)
    }), not the traffic`,
  );
}

interface Source {
  readonly name: string;
  readonly timeoutMs: number;
  readonly isDefault: boolean;
}

/** Whatever asks a server; a file (path_config_source) is there or is not. */
function* configSources(value: unknown, name: string): Generator<Source> {
  const tree = asTree(value);
  if (tree === undefined) return;
  const asks = ["ads", "api_config_source", "self"].some((kind) => field(tree, kind) !== undefined);
  if (asks) {
    const given = field(tree, "initial_fetch_timeout");
    const parsed = typeof given === "string" ? durationMs(given) : undefined;
    yield { name, timeoutMs: parsed ?? defaultFetchTimeoutMs, isDefault: parsed === undefined };
    return;
  }
  for (const [key, inner] of Object.entries(tree)) yield* configSources(inner, key);
}

/** Of protobuf: `15s`, `0.5s`, `0s`. */
function durationMs(text: string): number | undefined {
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(text)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

function namesOf(sources: readonly Source[]): string {
  return [...new Set(sources.map(({ name }) => name))].join(", ");
}

function list(value: unknown): readonly Tree[] {
  return (Array.isArray(value) ? value : []).map(asTree).filter((tree) => tree !== undefined);
}

/** Proto JSON takes both spellings of a name. */
function field(tree: Tree | undefined, name: string): unknown {
  return tree?.[name] ?? tree?.[name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
}

function asTree(value: unknown): Tree | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Tree : undefined;
}
