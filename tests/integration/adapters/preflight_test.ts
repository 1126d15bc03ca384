import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { BinaryDigests } from "../../../lib/adapters/digests.ts";
import { EnvoyChecks } from "../../../lib/adapters/envoy_checks.ts";
import { EnvoyPreflight } from "../../../lib/adapters/preflight.ts";
import { Snapshots } from "../../../lib/adapters/snapshots.ts";
import type { PreflightOutcome, PreflightRequest } from "../../../lib/runtime/ports.ts";
import { domainSockets, freeBaseId, hasSegment } from "../../support/base_ids.ts";
import { type BootstrapOptions, writeBootstrap } from "../../support/bootstrap.ts";
import { ENVOY_VERSIONS, envoyPath, type EnvoyVersion } from "../../support/envoys.ts";
import { tempDir } from "../../support/tempdir.ts";

const full: PreflightRequest = { depth: "full", provenKeys: [], joining: false, hotRestartVersion: "11.104" };
const never = new AbortController().signal;
const sound: BootstrapOptions = { adminPort: 9901, listenPort: 8080 };

/** One bootstrap after another through the same preflight of a real Envoy. */
async function withPreflight(
  version: EnvoyVersion,
  act: (run: (change: BootstrapOptions["change"]) => Promise<PreflightOutcome>, baseId: number) => Promise<void>,
): Promise<void> {
  await using dir = tempDir();
  const binaries = new BinaryDigests();
  const baseId = freeBaseId();
  const bootstrapPath = dir.at("envoy.yaml");
  const preflight = new EnvoyPreflight({
    envoyPath: envoyPath(version),
    bootstrapPath,
    flags: () => ({ baseId, concurrency: 1, drainTimeMs: 1000, parentShutdownTimeMs: 2000, userArgs: ["-l", "off"] }),
    binaries,
    snapshots: new Snapshots(dir.at("state")),
    checks: new EnvoyChecks(),
  });
  try {
    await act((change) => {
      writeBootstrap(bootstrapPath, { ...sound, ...(change === undefined ? {} : { change }) });
      return preflight.run(full, never);
    }, baseId);
  } finally {
    binaries.close();
  }
}

function detailOf(outcome: PreflightOutcome): string {
  if (outcome.kind === "passed") throw new Error("it passed");
  return `${outcome.refusal.name}: ${outcome.refusal.detail}`;
}

for (const version of ENVOY_VERSIONS) {
  Deno.test(`preflight, Envoy ${version}: a sound bootstrap passes, once for its content, and leaves no trace`, () =>
    withPreflight(version, async (run, baseId) => {
      const first = await run(undefined);
      strictEqual(first.kind === "passed" && first.cached, false);
      const again = await run(undefined);
      strictEqual(again.kind === "passed" && again.cached, true);
      strictEqual(hasSegment(baseId), false);
      deepStrictEqual(domainSockets(baseId), []);
    }));

  Deno.test(`preflight, Envoy ${version}: the reason of each refusal in one line, whatever the user's log level`, () =>
    withPreflight(version, async (run) => {
      match(detailOf(await run((it) => (it["foo"] = 1))), /^bootstrap_invalid: .*no such field: 'foo'/);
      match(
        detailOf(await run((it) => (it["static_resources"].listeners[0].address.socket_address.port_value = 99_999))),
        /^bootstrap_invalid: Proto .* failed \(StaticResources\.Listeners\[0\]\.Address\.SocketAddress\.PortValue: /,
      );
      const tls = (it: Record<string, unknown>) => {
        const certificate = {
          certificate_chain: { filename: "/nowhere/cert.pem" },
          private_key: { filename: "/nowhere/key.pem" },
        };
        // deno-lint-ignore no-explicit-any
        (it as any).static_resources.listeners[0].filter_chains[0].transport_socket = {
          name: "envoy.transport_sockets.tls",
          typed_config: {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            common_tls_context: { tls_certificates: [certificate] },
          },
        };
      };
      match(detailOf(await run(tls)), /^bootstrap_invalid: .*\/nowhere\/key\.pem$/);
      match(
        detailOf(
          await run((
            it,
          ) => (it["dynamic_resources"] = { cds_config: { path_config_source: { path: "/nowhere/cds" } } })),
        ),
        /^bootstrap_invalid: .*'\/nowhere\/cds' does not exist$/,
      );
    }));
}

Deno.test("preflight: every Envoy prints the hot restart version of the others", async () => {
  const checks = new EnvoyChecks();
  for (const version of ENVOY_VERSIONS) {
    const plan = {
      key: "",
      bootstrapDigest: "",
      binaryDigest: version,
      bootstrapPath: "",
      binaryPath: envoyPath(version),
      admin: { kind: "tcp", host: "", port: 1 },
    } as const;
    deepStrictEqual(await checks.hotRestartVersion(plan, never), { kind: "printed", version: "11.104" });
  }
});

Deno.test("BinaryDigests: three Envoys are three binaries, and a copy of one is that one", async () => {
  await using dir = tempDir();
  const digests = new BinaryDigests();
  try {
    const digestOf = async (path: string) => {
      const look = await digests.look(path);
      return look.kind === "usable" ? look.digest : look.problem;
    };
    const known = new Set<string>();
    for (const version of ENVOY_VERSIONS) known.add(await digestOf(envoyPath(version)));
    strictEqual(known.size, 3);
    const copy = dir.at("envoy");
    Deno.copyFileSync(envoyPath("1.39.3"), copy);
    strictEqual(await digestOf(copy), await digestOf(envoyPath("1.39.3")));
  } finally {
    digests.close();
  }
});
