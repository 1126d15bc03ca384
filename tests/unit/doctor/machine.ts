// Owns: a machine's files under a directory of a test's own, and a service on it. Must not: look healthy by accident: what is not written
// is not there.

import { dirname } from "node:path";
import { type ServiceConfig, toServiceConfig } from "../../../lib/config/service_config.ts";
import { serviceSchema } from "../../../lib/config/service_schema.ts";
import type { EpochStatus } from "../../../lib/core/status.ts";
import type { Patient } from "../../../lib/doctor/patient.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

export const ENVOY = 812;
export const EPOCHD = 700;

export interface Machine extends AsyncDisposable {
  readonly dir: TempDir;
  write(path: string, content: string | Uint8Array): void;
  link(path: string, target: string): void;
  patient(more?: Partial<Patient>, config?: Record<string, unknown>): Patient;
  /** The service runs: epoch 4 serves. */
  running(more?: Partial<Patient>, config?: Record<string, unknown>): Patient;
}

export function machine(): Machine {
  const dir = tempDir();
  const root = dir.path;
  const write = (path: string, content: string | Uint8Array) => {
    Deno.mkdirSync(dirname(`${root}${path}`), { recursive: true });
    if (typeof content === "string") Deno.writeTextFileSync(`${root}${path}`, content);
    else Deno.writeFileSync(`${root}${path}`, content);
  };
  const link = (path: string, target: string) => {
    Deno.mkdirSync(dirname(`${root}${path}`), { recursive: true });
    Deno.symlinkSync(target, `${root}${path}`);
  };
  Deno.mkdirSync(`${root}/dev/shm`, { recursive: true });
  write("/proc/net/unix", "");
  write("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
  write("/proc/self/limits", "Max open files            20000                20000                files\n");
  link("/proc/self/ns/net", "net:[1]");
  const settings = (config: Record<string, unknown>): ServiceConfig =>
    toServiceConfig("edge", serviceSchema.parse({ envoy_config: "/none.yaml", base_id: 7, ...config }));
  const patient: Machine["patient"] = (more = {}, config = {}) => ({
    service: "edge",
    config: settings(config),
    inPod: false,
    root,
    ...more,
  });
  return {
    dir,
    write,
    link,
    patient,
    running: (more = {}, config = {}) =>
      patient({
        supervisor: { pid: EPOCHD, epochs: [epoch(4, "newest")] },
        serving: {
          pid: ENVOY,
          epoch: 4,
          admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
          identity: { epoch: 4, state: "LIVE", version: "x/1.40.0/y", hotRestartVersion: "11.104", concurrency: 2 },
        },
        ...more,
      }, config),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

export function epoch(number: number, role: EpochStatus["role"]): EpochStatus {
  return {
    epoch: number,
    attempt: number,
    role,
    pid: ENVOY,
    bootstrapDigest: "b",
    binaryDigest: "c",
    admin: "127.0.0.1:9901",
    ageMs: 1,
  };
}

/** What Envoy leaves in /dev/shm. */
export function segment({ initializing = false, layout = 11 } = {}): Uint8Array {
  const bytes = new Uint8Array(104);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, 104n, true);
  view.setBigUint64(8, BigInt(layout), true);
  bytes[96] = initializing ? 1 : 0;
  return bytes;
}

/** One line of /proc/net/unix for a hot restart socket. */
export function socketLine(baseId: number, slot: number, inode = 99): string {
  return `0000: 00000002 00000000 00000000 0002 01 ${inode} @envoy_domain_socket_parent_${baseId * 10 + slot}@@\n`;
}
