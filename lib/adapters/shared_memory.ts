// Owns: Envoy's shared segment and what shows that a generation lives. Must not: decide when to repair.

import { type Refusal, refusal } from "../core/refusal.ts";
import type { AdminAddress } from "../core/epoch.ts";
import type { RepairOutcome, Vitals } from "../core/event.ts";
import type { Segment } from "../runtime/ports.ts";
import { reason } from "./content.ts";
import { holders, type HotRestartSocket, readHotRestartSockets } from "./hot_restart_sockets.ts";
import { readListening } from "./listening.ts";
import { deadState, readProcStat } from "./proc_stat.ts";

/** Layout 11.104 of 1.38 to 1.40: size (u64) at 0, layout version (u64) at 8, two mutexes, flags (u64) at 96. */
const SIZE = 104;
const LAYOUT = 11;
const FLAGS_AT = 96;
const INITIALIZING = 1;

export type SegmentLook =
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly why: string }
  | {
    readonly kind: "present";
    readonly uid: number;
    readonly ours: boolean;
    readonly sizeBytes: number;
    /** What the segment says of itself; absent when it is too small to say it. */
    readonly header?: { readonly sizeBytes: number; readonly layout: number };
    readonly initializing?: boolean;
  };

export interface SharedMemoryOptions {
  readonly shmDir?: string;
  readonly procDir?: string;
  /**
   * How long a start waits for the Envoys of a killed supervisor to end. They got SIGTERM, which takes under a second; a successor whose
   * parent was faster tries for ten to tell it and then aborts (1.38 to 1.40).
   */
  readonly endingMs?: number;
}

export class SharedMemory implements Segment {
  readonly path: string;
  private readonly procDir: string;
  private readonly endingMs: number;

  constructor(private readonly baseId: number, options: SharedMemoryOptions = {}) {
    this.path = `${options.shmDir ?? "/dev/shm"}/envoy_shared_memory_${baseId * 10}`;
    this.procDir = options.procDir ?? "/proc";
    this.endingMs = options.endingMs ?? 12_000;
  }

  async look(): Promise<SegmentLook> {
    try {
      const info = await Deno.lstat(this.path);
      const known = {
        kind: "present",
        uid: info.uid ?? -1,
        ours: info.uid === Deno.uid(),
        sizeBytes: info.size,
      } as const;
      if (!info.isFile) return { kind: "unreadable", why: "not a regular file" };
      // Another user's can't be read, and needn't be.
      if (!known.ours) return known;
      const bytes = await Deno.readFile(this.path);
      if (bytes.length < 16) return known;
      const view = new DataView(bytes.buffer);
      const header = { sizeBytes: Number(view.getBigUint64(0, true)), layout: Number(view.getBigUint64(8, true)) };
      if (!isKnown(bytes.length, header)) return { ...known, header };
      return { ...known, header, initializing: ((bytes[FLAGS_AT] ?? 0) & INITIALIZING) !== 0 };
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return { kind: "absent" };
      return { kind: "unreadable", why: reason(error) };
    }
  }

  async repair(): Promise<RepairOutcome> {
    const failed = (why: string): RepairOutcome => ({
      kind: "failed",
      detail: `clear INITIALIZING in ${this.path}: ${why}`,
    });
    try {
      using file = await Deno.open(this.path, { read: true, write: true });
      const bytes = new Uint8Array(SIZE + 1);
      const size = await readUpTo(file, bytes);
      const view = new DataView(bytes.buffer);
      const header = { sizeBytes: Number(view.getBigUint64(0, true)), layout: Number(view.getBigUint64(8, true)) };
      if (!isKnown(size, header)) {
        return failed(
          `expected ${SIZE} bytes of layout ${LAYOUT}, found ${
            size > SIZE ? "more" : size
          } bytes that say ${header.sizeBytes}, layout ${header.layout}`,
        );
      }
      const flags = bytes[FLAGS_AT] ?? 0;
      if ((flags & INITIALIZING) === 0) return { kind: "clean" };
      await file.seek(FLAGS_AT, Deno.SeekMode.Start);
      // One byte: the others of the word are Envoy's alone.
      await file.write(Uint8Array.of(flags & ~INITIALIZING));
      return { kind: "cleared" };
    } catch (error) {
      return failed(reason(error));
    }
  }

  sockets(): Promise<HotRestartSocket[]> {
    return readHotRestartSockets(this.baseId, this.procDir);
  }

  async vitals(pid: number, epoch: number, admin?: AdminAddress): Promise<Vitals> {
    const process = await readProcStat(pid, this.procDir);
    if (process === undefined) return { alive: false, detail: `process ${pid} is gone` };
    const dead = deadState(process.state);
    if (dead !== undefined) return { alive: false, detail: `process ${pid} is ${dead}` };
    const name = `parent socket of epoch ${epoch}`;
    try {
      const there = (await this.sockets()).some(({ role, udp, slot }) =>
        role === "parent" && !udp && slot === epoch % 3
      );
      const listens = admin && await readListening(pid, admin, this.procDir);
      const isDeaf = listens !== undefined && !listens.admin && !listens.traffic;
      return {
        alive: there,
        detail: `process ${pid} lives, the ${name} is ${there ? "there" : "gone"}${
          isDeaf ? ", it listens nowhere" : ""
        }`,
        ...(listens === undefined ? {} : { listens }),
      };
    } catch (error) {
      return { alive: true, detail: `process ${pid} lives, the ${name} can't be looked for: ${reason(error)}` };
    }
  }

  /**
   * Why an epoch 0 must not start now. Envoy would not notice a living epoch 1 or 2 of the same base id: both would serve one port.
   * `printedLayout`: what the binary prints for --hot-restart-version, asked only when the segment is of a layout that epochd doesn't know.
   */
  async startObstacle(printedLayout?: () => Promise<string | undefined>): Promise<Refusal | undefined> {
    const held = await this.heldAfterWaiting();
    if (held.length > 0) return refusal("base_id_held", await this.describeHolders(held));
    const segment = await this.look();
    if (segment.kind === "absent") return undefined;
    const foreign = (why: string) =>
      refusal(
        "segment_foreign",
        `start on base id ${this.baseId}: ${this.path} ${why}; remove it if nothing uses it, or use another --base-id`,
      );
    if (segment.kind === "unreadable") return foreign(`can't be used: ${segment.why}`);
    if (!segment.ours) {
      // Envoy's epoch 0 unlinks it first, which root may (CAP_FOWNER).
      return Deno.uid() === 0
        ? undefined
        : foreign(`belongs to uid ${segment.uid}, epochd and Envoy run as uid ${Deno.uid()}`);
    }
    if (segment.header === undefined || segment.header.sizeBytes !== segment.sizeBytes) {
      return foreign("was not made by an Envoy with hot restart");
    }
    if (isKnown(segment.sizeBytes, segment.header)) return undefined;
    const layout = `${segment.header.layout}.${segment.sizeBytes}`;
    const printed = await printedLayout?.();
    return printed === layout ? undefined : foreign(`has layout ${layout}, expected ${printed ?? `${LAYOUT}.${SIZE}`}`);
  }

  /** A segment of another user: Envoy N+1 would end with "Permission denied" (1.38 to 1.40), and so would its supervisor's repair. */
  async joinObstacle(): Promise<Refusal | undefined> {
    const segment = await this.look();
    if (segment.kind !== "present" || segment.ours || Deno.uid() === 0) return undefined;
    return refusal(
      "segment_foreign",
      `join the Envoy on base id ${this.baseId}: ${this.path} belongs to uid ${segment.uid}, epochd and Envoy run as uid ${Deno.uid()}; ` +
        "roll delete-first, or run as the same user",
    );
  }

  /**
   * Why no Envoy can take over from the one that lives on this base id, whoever started that: without the segment epoch N+1 aborts with
   * "cannot open shared memory region" (1.38 to 1.40). systemd's RemoveIPC= removes it when a user who is no system user logs out.
   */
  async handoffObstacle(): Promise<Refusal | undefined> {
    if ((await this.look()).kind !== "absent") return undefined;
    const pids = await holders(await this.sockets(), this.procDir);
    // It may have another /dev/shm than this process, where only its successors look.
    const isThere = await Promise.all(pids.map((pid) => exists(`${this.procDir}/${pid}/root${this.path}`)));
    if (pids.length === 0 || isThere.includes(true)) return undefined;
    return refusal(
      "segment_missing",
      `hand over on base id ${this.baseId}: ${this.path} was removed, and nothing can take over from Envoy ${
        pids.join(" and ")
      } without it; ` +
        "epochd restart --drained makes a new one, where no epochd runs SIGTERM to that Envoy and a start do",
    );
  }

  private async heldAfterWaiting(): Promise<HotRestartSocket[]> {
    const deadline = performance.now() + this.endingMs;
    for (;;) {
      const sockets = await this.sockets();
      if (sockets.length === 0 || performance.now() >= deadline) return sockets;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  private async describeHolders(sockets: readonly HotRestartSocket[]): Promise<string> {
    const slots = [...new Set(sockets.map(({ slot }) => slot))].sort();
    const pids = await holders(sockets, this.procDir);
    const who = pids.length > 0
      ? `process ${pids.join(" and ")}`
      : "a process that can't be seen from here (another user or container)";
    return `start on base id ${this.baseId}: an Envoy lives on it (hot restart sockets ${
      slots.map((slot) => this.baseId * 10 + slot).join(", ")
    }), held by ${who}; ` +
      "stop it or use another --base-id";
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function isKnown(sizeBytes: number, header: { readonly sizeBytes: number; readonly layout: number }): boolean {
  return sizeBytes === SIZE && header.sizeBytes === SIZE && header.layout === LAYOUT;
}

async function readUpTo(file: Deno.FsFile, into: Uint8Array): Promise<number> {
  let filled = 0;
  while (filled < into.length) {
    const count = await file.read(into.subarray(filled));
    if (count === null) break;
    filled += count;
  }
  return filled;
}
