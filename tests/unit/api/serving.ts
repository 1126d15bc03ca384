// Owns: an API server on a socket of its own, for a test, and raw questions to it. Must not: outlive the test.

import { type ApiLimits, startApi } from "../../../lib/api/server.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { tempDir } from "../../support/tempdir.ts";
import { type ConfigScene, configScene, type ConfigSceneOptions } from "../runtime/config_scene.ts";
import { FakeBinaries } from "./fake_binaries.ts";
import { FakeObserved } from "./fake_observed.ts";
import { FakeControl } from "./fake_control.ts";

export interface Serving extends AsyncDisposable {
  readonly path: string;
  readonly directory: string;
  readonly control: FakeControl;
  /** Of its configuration. */
  readonly scene: ConfigScene;
  readonly told: readonly ShellFact[];
  readonly observed: FakeObserved;
  readonly binaries: FakeBinaries;
  close(): Promise<void>;
}

export async function serve(
  limits: Partial<ApiLimits> = {},
  control = new FakeControl(),
  more: ConfigSceneOptions = {},
): Promise<Serving> {
  const scene = await configScene(more);
  const { configuration, fleet } = scene;
  const dir = tempDir();
  fleet.onTrigger = (name, source, force) => control.trigger(name, source, { force })?.request;
  const path = dir.at("api.sock");
  const told: ShellFact[] = [];
  const observed = new FakeObserved();
  const log = { shell: (fact: ShellFact) => void told.push(fact) };
  const binaries = new FakeBinaries();
  const api = await startApi({ path, control, configuration, observed, binaries, limits, log });
  if (told.some(({ kind }) => kind === "api_failed")) throw new Error(`no API: ${JSON.stringify(told)}`);
  let closed: Promise<void> | undefined;
  const close = () => closed ??= api.close();
  return {
    path,
    directory: dir.path,
    control,
    scene,
    told,
    observed,
    binaries,
    close,
    async [Symbol.asyncDispose]() {
      await close();
      await scene[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** Sends bytes as they are and reads until the server closes. */
export async function sendRaw(path: string, text: string): Promise<string> {
  const connection = await Deno.connect({ transport: "unix", path });
  try {
    await connection.write(new TextEncoder().encode(text));
    return await new Response(connection.readable).text();
  } catch (error) {
    // What was already sent when the server closed may come back as a reset.
    if (error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe) return "";
    throw error;
  } finally {
    try {
      connection.close();
    } catch { /* The stream has closed it. */ }
  }
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export async function request(
  path: string,
  method: string,
  target: string,
  headers?: string,
  sent?: unknown,
): Promise<HttpAnswer> {
  const content = sent === undefined ? "" : typeof sent === "string" ? sent : JSON.stringify(sent);
  const length = new TextEncoder().encode(content).length;
  const framed = content === "" ? "" : `content-type: application/json\r\ncontent-length: ${length}\r\n`;
  const text = await sendRaw(
    path,
    `${method} ${target} HTTP/1.1\r\nhost: x\r\n${framed}${headers ?? ""}\r\n${content}`,
  );
  const [head = "", ...body] = text.split("\r\n\r\n");
  const [statusLine = "", ...lines] = head.split("\r\n");
  const fields = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { status: Number(statusLine.split(" ")[1]), headers: new Headers(fields), body: body.join("\r\n\r\n") };
}
