// Owns: all that one scenario stands on: ports, upstreams, certificates, the bootstrap, and the path by which the Envoy is named.
// Must not: start an Envoy or a supervisor.
import { freeBaseId, removeSegment } from "../../tests/support/base_ids.ts";
import { makeAuthority, makeCertificate } from "../../tests/support/certificates.ts";
import { envoyPath, type EnvoyVersion } from "../../tests/support/envoys.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { type TempDir, tempDir } from "../../tests/support/tempdir.ts";
import { startUpstream } from "../../tests/support/upstream.ts";
import { type MeterPorts, writeMeterBootstrap } from "./bootstrap.ts";
import type { Site } from "./held.ts";
import { startGrpcUpstream, startTcpEcho, startUdpEcho } from "./upstreams.ts";

export interface Stage extends AsyncDisposable {
  readonly directory: TempDir;
  readonly site: Site;
  readonly adminPort: number;
  readonly baseId: number;
  readonly bootstrapPath: string;
  /** A link to the Envoy that is to run; `install` lets it name another. */
  readonly envoyPath: string;
  install(version: EnvoyVersion): void;
}

const NAMES = [
  "admin",
  "http",
  "tls",
  "quic",
  "tcp",
  "udp",
  "upstream",
  "grpcUpstream",
  "tcpUpstream",
  "udpUpstream",
] as const satisfies readonly (keyof MeterPorts)[];

export async function openStage(version: EnvoyVersion): Promise<Stage> {
  const free = freePorts(NAMES.length);
  const ports = Object.fromEntries(NAMES.map((name, at) => [name, free[at]!])) as Record<keyof MeterPorts, number>;
  const baseId = freeBaseId();
  await using opened = new AsyncDisposableStack();
  const directory = opened.use(tempDir());
  opened.defer(() => removeSegment(baseId));
  opened.use(startUpstream(ports.upstream));
  opened.use(await startGrpcUpstream(ports.grpcUpstream));
  opened.use(startTcpEcho(ports.tcpUpstream));
  opened.use(await startUdpEcho(ports.udpUpstream));
  const authorityPath = makeAuthority(directory).certPath;
  const certificate = makeCertificate(directory, "server", { alternatives: "IP:127.0.0.1,DNS:localhost" });
  const bootstrapPath = writeMeterBootstrap(directory.at("envoy.yaml"), ports, certificate);
  const link = directory.at("envoy");
  const install = (next: EnvoyVersion) => {
    Deno.symlinkSync(envoyPath(next), `${link}.new`);
    Deno.renameSync(`${link}.new`, link);
  };
  install(version);
  const { http, tls, quic, tcp, udp } = ports;
  const authority = Deno.readTextFileSync(authorityPath);
  const site = { hostname: "127.0.0.1", http, tls, quic, tcp, udp, authority, authorityPath };
  const everything = opened.move();
  return {
    directory,
    site,
    adminPort: ports.admin,
    baseId,
    bootstrapPath,
    envoyPath: link,
    install,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
