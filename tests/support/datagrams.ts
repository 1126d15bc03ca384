// Owns: abstract datagram sockets for tests, by a process of its own: Deno's can't send while they wait to receive.
// Must not: know what is said over them.

import { until, within } from "./until.ts";

export interface Datagram {
  readonly from: string;
  readonly hex: string;
}

/** A socket with a name of its own: what it gets is kept, what it sends goes to one other name. */
export class DatagramSocket implements AsyncDisposable {
  readonly received: Datagram[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #read: Promise<void>;
  #sent = 0;
  #answered = 0;
  #isBound = false;

  /** Names without their leading NUL, padded as Envoy pads them unless `padded` says otherwise. */
  constructor(name: string, to: string, readonly padded = true) {
    const main = new URL("./datagrams_main.py", import.meta.url).pathname;
    const pad = (text: string) => padded ? text.padEnd(107, "\0") : text;
    this.#child = new Deno.Command("python3", {
      args: [main, ...[name, to].map((text) => encodeURIComponent(pad(text)))],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#read = this.#collect();
  }

  async bound(): Promise<this> {
    await until("the socket is bound", () => this.#isBound);
    return this;
  }

  /** Resolves when the kernel has taken it, or refused it. */
  async send(bytes: Uint8Array): Promise<void> {
    const count = ++this.#sent;
    await this.#writer.write(new TextEncoder().encode(`${hexOf(bytes)}\n`));
    await until("the datagram is sent", () => this.#answered >= count, { everyMs: 2 });
  }

  async #collect(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "bound") this.#isBound = true;
        else if (line.startsWith("sent ")) this.#answered++;
        else this.received.push(JSON.parse(line) as Datagram);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await within("the end of a socket's process", this.#child.status);
    await this.#read;
  }
}

export function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}
