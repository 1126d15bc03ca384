// Owns: traffic on the node's network as a test sees it. Must not: send anything itself (traffic_main.ts does).
import { join } from "node:path";
import type { TrafficOptions, TrafficReport } from "../../support/traffic.ts";
import { within } from "../../support/until.ts";
import type { Cluster } from "./cluster.ts";
import { linesOf } from "./lines.ts";

export interface RemoteTrafficOptions extends Omit<TrafficOptions, "onFailure"> {
  readonly upstreamPort: number;
}

const MAIN = join(import.meta.dirname!, "traffic_main.ts");

export class RemoteTraffic implements AsyncDisposable {
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #commands: WritableStreamDefaultWriter<Uint8Array>;
  #report: TrafficReport | undefined;

  private constructor(private readonly child: Deno.ChildProcess) {
    this.#lines = linesOf(child.stdout).getReader();
    this.#commands = child.stdin.getWriter();
  }

  static async start(cluster: Cluster, options: RemoteTrafficOptions): Promise<RemoteTraffic> {
    const args = ["run", "--quiet", "--allow-all", MAIN, JSON.stringify(options)];
    const traffic = new RemoteTraffic(cluster.spawnOnNode(Deno.execPath(), args));
    await traffic.#answer();
    return traffic;
  }

  /** Resolves when the stream is held; how it ended is in the report. */
  async hold(stream: { readonly chunks: number; readonly everyMs: number }): Promise<void> {
    await this.#ask({ hold: stream });
  }

  async snapshot(): Promise<TrafficReport> {
    return await this.#ask({ snapshot: true }) as TrafficReport;
  }

  async stop(): Promise<TrafficReport> {
    if (this.#report === undefined) {
      this.#report = await this.#ask({ stop: true }) as TrafficReport;
      await this.#commands.close();
      await this.child.status;
    }
    return this.#report;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop().catch(() => this.child.kill("SIGKILL"));
    await this.child.status;
    await this.#lines.cancel().catch(() => {});
  }

  async #ask(command: unknown): Promise<unknown> {
    await this.#commands.write(new TextEncoder().encode(`${JSON.stringify(command)}\n`));
    return await this.#answer();
  }

  async #answer(): Promise<unknown> {
    const { value } = await within("an answer of the traffic on the node", this.#lines.read(), 60_000);
    if (value === undefined) throw new Error("the traffic on the node has ended by itself");
    return JSON.parse(value);
  }
}
