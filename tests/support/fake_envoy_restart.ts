// Owns: the hot-restart side of a fake Envoy: the shared segment, the abstract sockets with Envoy's names, and what
// child and parent say to each other over them. Must not end the process or know behaviours.
//
// The names in /proc/net/unix and the segment are as Envoy's; the words on the socket are this fake's own.

const SEGMENT_BYTES = 104;
const FLAGS_AT = 96;
const INITIALIZING = 1n;

export class Segment {
  private constructor(readonly path: string) {}

  /** Epoch 0 makes a new one. Undefined when a later epoch finds none. */
  static attach(baseId: number, epoch: number): Segment | undefined {
    const path = `/dev/shm/envoy_shared_memory_${baseId * 10}`;
    try {
      if (epoch > 0) {
        Deno.statSync(path);
        return new Segment(path);
      }
      Deno.removeSync(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      if (epoch > 0) return undefined;
    }
    const bytes = new Uint8Array(SEGMENT_BYTES);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(SEGMENT_BYTES), true);
    view.setBigUint64(8, 11n, true);
    Deno.writeFileSync(path, bytes, { mode: 0o600, createNew: true });
    return new Segment(path);
  }

  get initializing(): boolean {
    const bytes = Deno.readFileSync(this.path);
    return (new DataView(bytes.buffer).getBigUint64(FLAGS_AT, true) & INITIALIZING) !== 0n;
  }

  set initializing(value: boolean) {
    using file = Deno.openSync(this.path, { write: true });
    file.seekSync(FLAGS_AT, Deno.SeekMode.Start);
    file.writeSync(new Uint8Array([value ? 1 : 0]));
  }
}

/** The sockets of this epoch, held until the process ends; undefined when a living epoch has one of the names. */
export function holdSockets(baseId: number, epoch: number): { readonly parent: Deno.UnixListener } | undefined {
  try {
    for (const role of ["child", "udp_child", "udp_parent"]) {
      Deno.listen({ transport: "unix", path: socketName(role, baseId, epoch) });
    }
    return { parent: Deno.listen({ transport: "unix", path: socketName("parent", baseId, epoch) }) };
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return undefined;
    throw error;
  }
}

/** How a child talks to its parent. */
export class ChildSide {
  #lost = () => {};
  #mayGo = false;
  readonly #answers: (() => void)[] = [];

  private constructor(readonly conn: Deno.UnixConn) {}

  static async connect(baseId: number, parentEpoch: number): Promise<ChildSide | undefined> {
    try {
      const path = socketName("parent", baseId, parentEpoch);
      const child = new ChildSide(await Deno.connect({ transport: "unix", path }));
      child.#readAnswers();
      return child;
    } catch {
      return undefined;
    }
  }

  /** Called when the parent goes without having been told to. */
  onLost(lost: () => void): void {
    this.#lost = lost;
  }

  async ask(what: "shutdown_admin" | "drain" | "terminate"): Promise<void> {
    if (this.#mayGo) return;
    if (what === "terminate") this.#mayGo = true;
    const answered = new Promise<void>((resolve) => this.#answers.push(resolve));
    try {
      await this.conn.write(new TextEncoder().encode(`${what}\n`));
    } catch {
      return this.#ended();
    }
    await answered;
  }

  async #readAnswers(): Promise<void> {
    const bytes = new Uint8Array(64);
    try {
      while (true) {
        const count = await this.conn.read(bytes);
        if (count === null) break;
        // One byte an answer.
        for (let i = 0; i < count; i++) this.#answers.shift()?.();
      }
    } catch { /* the same as its end */ }
    this.#ended();
  }

  #ended(): void {
    if (!this.#mayGo) this.#lost();
    for (const answer of this.#answers.splice(0)) answer();
  }
}

/** How a parent hears its children, one after the other or (after a failed one) again. */
export class ParentSide {
  static async serve(listener: Deno.UnixListener, onAsked: (what: string) => Promise<void>): Promise<void> {
    for await (const conn of listener) ParentSide.#hear(conn, onAsked).catch(() => {});
  }

  static async #hear(conn: Deno.UnixConn, onAsked: (what: string) => Promise<void>): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    const bytes = new Uint8Array(256);
    while (true) {
      const count = await conn.read(bytes);
      if (count === null) return;
      text += decoder.decode(bytes.subarray(0, count));
      for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n")) {
        await onAsked(text.slice(0, at));
        text = text.slice(at + 1);
        await conn.write(new Uint8Array([1]));
      }
    }
  }
}

function socketName(role: string, baseId: number, epoch: number): string {
  // Envoy binds the whole address structure: the names are padded with NULs, seen as @ in /proc/net/unix.
  return `\0envoy_domain_socket_${role}_${baseId * 10 + epoch % 3}`.padEnd(108, "\0");
}
