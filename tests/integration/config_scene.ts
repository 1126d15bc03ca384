// Owns: the stage of a test with two services on real Envoys, described by one epochd.yaml. Must not: know what is tested.
import { stringify } from "yaml";
import { writeBootstrap } from "../support/bootstrap.ts";
import { domainSockets, freeBaseId, removeSegment } from "../support/base_ids.ts";
import { envoyPath } from "../support/envoys.ts";
import { type Epochd, startEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { processesWithArgument } from "../support/procfs.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { startTraffic, type Traffic } from "../support/traffic.ts";
import { until } from "../support/until.ts";

export interface ServiceOnStage {
  readonly name: string;
  readonly port: number;
  readonly baseId: number;
  readonly bootstrapPath: string;
  /** Living Envoys of its base id. */
  pids(): number[];
  edit(generation: string): void;
}

export interface ConfigStage extends AsyncDisposable {
  readonly directory: TempDir;
  readonly configPath: string;
  readonly edge: ServiceOnStage;
  readonly core: ServiceOnStage;
  /** Not in the file at first. */
  readonly extra: ServiceOnStage;
  /** What epochd.yaml would say of it. */
  fieldsOf(service: ServiceOnStage): Record<string, unknown>;
  text(): string;
  /** Replaces a part of epochd.yaml, by a rename. */
  edit(from: string | RegExp, to: string): void;
  start(extraArguments?: readonly string[]): Promise<Epochd>;
  traffic(service: ServiceOnStage): Traffic;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

/** One request to the API of a supervisor. */
export async function api(
  epochd: Epochd,
  method: string,
  target: string,
  body?: unknown,
  etag?: string,
): Promise<Answer> {
  const connection = await Deno.connect({ transport: "unix", path: epochd.apiSocket });
  const content = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${target} HTTP/1.1`,
    "host: x",
    `content-length: ${new TextEncoder().encode(content).length}`,
  ];
  if (body !== undefined) lines.push("content-type: application/json");
  if (etag !== undefined) lines.push(`if-match: ${etag}`);
  await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n${content}`));
  const text = await new Response(connection.readable).text();
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...fields] = text.slice(0, end).split("\r\n");
  const headers = new Headers(fields.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  }));
  const rest = text.slice(end + 4);
  const isJson = /json/.test(headers.get("content-type") ?? "");
  return { status: Number(first.split(" ")[1]), headers, body: isJson ? JSON.parse(rest) : rest };
}

export function configStage(): ConfigStage {
  const directory = tempDir();
  const configPath = directory.at("epochd.yaml");
  const services = ["edge", "core", "extra"].map((name): ServiceOnStage => {
    const [port, adminPort] = freePorts(2) as [number, number];
    const baseId = freeBaseId();
    const bootstrapPath = directory.at(`${name}.yaml`);
    const edit = (generation: string) =>
      void writeBootstrap(bootstrapPath, { listenPort: port, adminPort, generation });
    edit("first");
    const pids = () => processesWithArgument("--base-id", String(baseId)).filter((pid) => pid !== Deno.pid);
    return { name, port, baseId, bootstrapPath, pids, edit };
  });
  const [edge, core, extra] = services as [ServiceOnStage, ServiceOnStage, ServiceOnStage];
  const fieldsOf = ({ name, baseId, bootstrapPath }: ServiceOnStage) => ({
    envoy_path: envoyPath(),
    envoy_config: bootstrapPath,
    base_id: baseId,
    concurrency: 1,
    drain_time: "1s",
    parent_shutdown_time: "2s",
    state_dir: directory.at(`state-${name}`),
    ready_marker: directory.at(`ready-${name}`),
  });
  directory.write(
    "epochd.yaml",
    `# two services\n${
      stringify({ services: { edge: fieldsOf(edge), core: fieldsOf(core) }, log: { level: "info" } })
    }`,
  );
  const started: Epochd[] = [];
  const flowing: Traffic[] = [];
  return {
    directory,
    configPath,
    edge,
    core,
    extra,
    fieldsOf,
    text: () => Deno.readTextFileSync(configPath),
    edit(from, to) {
      const before = Deno.readTextFileSync(configPath);
      const after = before.replace(from, to);
      if (after === before) throw new Error(`${from} is not in ${before}`);
      Deno.writeTextFileSync(`${configPath}.new`, after);
      Deno.renameSync(`${configPath}.new`, configPath);
    },
    async start(extraArguments = []) {
      const { bootstrapPath, baseId } = edge;
      const epochd = startEpochd({
        envoyPath: envoyPath(),
        bootstrapPath,
        baseId,
        directory,
        configPath,
        extraArguments,
      });
      started.push(epochd);
      for (const name of ["edge", "core"]) await epochd.waitForEvent("epoch_live", ({ service }) => service === name);
      await epochd.waitForEvent("api_listening");
      return epochd;
    },
    traffic({ port }) {
      const traffic = startTraffic({ port, requestsPerSecond: 200 });
      flowing.push(traffic);
      return traffic;
    },
    async [Symbol.asyncDispose]() {
      for (const traffic of flowing) await traffic.stop();
      for (const epochd of started.toReversed()) await epochd[Symbol.asyncDispose]();
      for (const { name, pids, baseId } of services) {
        await until(`no Envoy of ${name} is left`, () => pids().length === 0);
        await until(`the sockets of ${name} are gone`, () => domainSockets(baseId).length === 0);
        removeSegment(baseId);
      }
      await directory[Symbol.asyncDispose]();
    },
  };
}
