// Owns: noticing that a file's content changed. Must not: judge content, or debounce.

import type { Content } from "../core/event.ts";
import type { WatchedContent } from "../runtime/ports.ts";
import { readContent, reason, statKey } from "./content.ts";
import type { BinaryDigests } from "./digests.ts";
import { sameDirectories, type WatchPoints, watchPoints } from "./watch_points.ts";

/** How one kind of file is looked at. */
interface Subject {
  look(path: string): Promise<Content>;
  /** Read again at every event, or only when its stat changed (large files). */
  readonly readAtEvents: boolean;
  /** Written over seconds: looked at only when its stat rests. */
  readonly settles: boolean;
  /** Work that can wait until nothing happens. */
  idle?(): Promise<void>;
}

/** Small enough to be read at each event: two writes in one tick of the kernel's clock leave the same stat. */
const smallFile: Subject = {
  readAtEvents: true,
  settles: false,
  async look(path) {
    const read = await readContent(path);
    return read.kind === "read" ? { kind: "usable", digest: read.digest } : { kind: "unusable", problem: read.problem };
  },
};

function largeFile(binaries: BinaryDigests): Subject {
  return {
    readAtEvents: false,
    settles: true,
    async look(path) {
      const look = await binaries.look(path);
      return look.kind === "usable" ? look : { kind: "unusable", problem: look.problem };
    },
    idle: () => binaries.settle(),
  };
}

export interface ContentWatchOptions {
  /** Stands in for the path where that is not there. */
  readonly fallback?: string;
  /** What is watched is a binary, told apart by these digests. */
  readonly binaries?: BinaryDigests;
  /** Period of looking without events: the safety net (network file systems), and the only way while the watch is lost. */
  readonly pollMs?: number;
  readonly settleMs?: number;
  /** Stands in for Deno.watchFs. */
  readonly watchFs?: (directories: string[]) => Deno.FsWatcher;
}

type WatchSettings = Required<Omit<ContentWatchOptions, "binaries" | "fallback">>;

export class ContentWatch implements WatchedContent {
  private readonly subject: Subject;
  private readonly settings: WatchSettings;

  constructor(private readonly given: ContentWatchOptions = {}) {
    const options = given;
    this.subject = options.binaries === undefined ? smallFile : largeFile(options.binaries);
    this.settings = {
      pollMs: options.pollMs ?? 10_000,
      settleMs: options.settleMs ?? 200,
      watchFs: options.watchFs ?? ((directories) => Deno.watchFs(directories, { recursive: false })),
    };
  }

  watch(
    path: string,
    report: (content: Content) => void,
    mode: (mode: "events" | "polling", why: string) => void,
  ): { close(): void } {
    const { fallback } = this.given;
    const paths = fallback === undefined ? [path] as const : [path, fallback] as const;
    const watch = new OneWatch(paths, this.subject, this.settings, report, mode);
    return { close: () => watch.close() };
  }
}

class OneWatch {
  private readonly closing = new AbortController();
  private watcher: Deno.FsWatcher | undefined;
  private points: WatchPoints = { directories: new Map(), paths: new Set() };
  private mode: "events" | "polling" | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private renewing: ReturnType<typeof setTimeout> | undefined;
  private running = false;
  /** What to do when the look under way is over. */
  private again: "event" | "poll" | undefined;
  /** Asked of the next look: watch anew although the way is the same. */
  private renew = false;
  private renewals = 0;
  private lastStat = "";
  private reported: Content | undefined;

  constructor(
    private readonly paths: readonly [string, ...string[]],
    private readonly subject: Subject,
    private readonly options: WatchSettings,
    private readonly report: (content: Content) => void,
    private readonly tellMode: (mode: "events" | "polling", why: string) => void,
  ) {
    this.wake("event");
    this.poll();
  }

  close(): void {
    this.closing.abort();
    clearTimeout(this.timer);
    clearTimeout(this.renewing);
    this.dropWatcher();
  }

  /** The first that is there; else the last, whose absence is told. */
  private path(): string {
    return this.paths.find((path) => exists(path)) ?? this.paths.at(-1)!;
  }

  private get closed(): boolean {
    return this.closing.signal.aborted;
  }

  private poll(): void {
    this.timer = setTimeout(() => {
      this.renewNow();
      this.poll();
    }, this.options.pollMs);
  }

  /** One look at a time: a file system that hangs costs one look, and what comes meanwhile is one more after it. */
  private async wake(why: "event" | "poll"): Promise<void> {
    if (this.running) {
      if (this.again !== "event") this.again = why;
      return;
    }
    this.running = true;
    try {
      for (let next: "event" | "poll" | undefined = why; next !== undefined && !this.closed; next = this.again) {
        this.again = undefined;
        await this.follow();
        await this.check(next);
      }
    } finally {
      this.running = false;
    }
  }

  /** Puts the watch where the path leads now. */
  private async follow(): Promise<void> {
    const points = merged(await Promise.all(this.paths.map(watchPoints)));
    if (this.closed) return;
    const same = sameDirectories(points, this.points);
    if (!same && this.points.directories.size > 0) this.doubt();
    this.points = points;
    if (this.watcher !== undefined && same && !this.renew) return;
    this.renew = false;
    const old = this.watcher;
    try {
      const watcher = this.options.watchFs([...points.directories.keys()]);
      this.watcher = watcher;
      this.listen(watcher);
      this.setMode("events", [...points.directories.keys()].join(", "));
      // Between the walk and the watch the way may have changed.
      this.again = "event";
    } catch (error) {
      this.watcher = undefined;
      this.setMode("polling", `watch ${[...points.directories.keys()].join(", ")}: ${reason(error)}`);
    }
    if (old !== undefined) closeQuietly(old);
  }

  /**
   * Deno (2.6.10, 2.9.8) has one inotify instance for all watches, by path: news of a directory's removal that come late take the watch
   * of its replacement with them. So after such a change the watch is made again when that is over, and once more at a poll.
   */
  private doubt(): void {
    this.renewals = 2;
    clearTimeout(this.renewing);
    this.renewing = setTimeout(() => this.renewNow(), this.options.settleMs);
  }

  private renewNow(): void {
    if (this.renewals > 0) {
      this.renewals--;
      this.renew = true;
    }
    this.wake("poll");
  }

  private async listen(watcher: Deno.FsWatcher): Promise<void> {
    let why = "the watch ended";
    try {
      for await (const { kind, paths } of watcher) {
        // Closing after a write (2.6.10, 2.9.8): no news. A Deno that tells of reading as well must not wake itself for ever.
        if (kind === "access" || this.watcher !== watcher) continue;
        if (paths.length === 0 || paths.some((path) => this.concerns(path))) this.wake("event");
      }
    } catch (error) {
      why = reason(error);
    }
    if (this.watcher !== watcher || this.closed) return;
    this.watcher = undefined;
    this.setMode("polling", why);
  }

  private concerns(path: string): boolean {
    return this.points.paths.has(path) || this.points.directories.has(path);
  }

  private async check(why: "event" | "poll"): Promise<void> {
    const stat = await this.stat();
    if (stat === this.lastStat && !(why === "event" && this.subject.readAtEvents)) {
      if (why === "poll") await this.subject.idle?.();
      return;
    }
    if (this.subject.settles && this.reported !== undefined && stat !== await this.statAfterRest()) {
      // Still being written.
      this.again = "event";
      return;
    }
    let content = await this.subject.look(this.path());
    if (content.kind === "unusable" && this.reported?.kind === "usable") {
      // An editor truncates before it writes, and some unlink before they rename: no news until it lasts.
      await this.rest();
      content = await this.subject.look(this.path());
    }
    if (this.closed) return;
    // Of before the look: what changed during it is found by the next.
    this.lastStat = stat;
    if (this.reported !== undefined && sameContent(content, this.reported)) return;
    this.reported = content;
    this.report(content);
  }

  private async stat(): Promise<string> {
    try {
      return statKey(await Deno.stat(this.path()));
    } catch (error) {
      return reason(error);
    }
  }

  private async statAfterRest(): Promise<string> {
    await this.rest();
    return await this.stat();
  }

  private rest(): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.closing;
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, signal.aborted ? 0 : this.options.settleMs);
      signal.addEventListener("abort", done);
    });
  }

  private setMode(mode: "events" | "polling", why: string): void {
    if (this.mode === mode || this.closed) return;
    this.mode = mode;
    this.tellMode(mode, why);
  }

  private dropWatcher(): void {
    const watcher = this.watcher;
    this.watcher = undefined;
    if (watcher !== undefined) closeQuietly(watcher);
  }
}

function merged(all: readonly WatchPoints[]): WatchPoints {
  return {
    directories: new Map(all.flatMap(({ directories }) => [...directories])),
    paths: new Set(all.flatMap(({ paths }) => [...paths])),
  };
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function sameContent(one: Content, other: Content): boolean {
  if (one.kind === "usable") return other.kind === "usable" && one.digest === other.digest;
  return other.kind === "unusable" && one.problem === other.problem;
}

function closeQuietly(watcher: Deno.FsWatcher): void {
  try {
    watcher.close();
  } catch {
    // It had ended by itself.
  }
}
