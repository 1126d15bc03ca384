// Owns: one flock(2) lock file with bounded waits, shared with other programs. Must not: hold it longer than it is asked to.

/** `tryLock` came with Deno 2.7; on 2.6.10 a waiting lock can't be cancelled, so one that comes too late is let go at once. */
interface TryLock {
  tryLock(exclusive: boolean): Promise<boolean>;
}

const RETRY_MS = 20;

export interface FileLockOptions {
  /** Shared: many at once, but none beside an exclusive one. A question whether somebody holds it disturbs no other question so. */
  readonly shared?: boolean;
  /** Whether this runtime can ask without waiting; for tests. */
  readonly canTry?: boolean;
}

export class FileLock {
  readonly #exclusive: boolean;
  readonly #canTry: boolean;
  #held: Deno.FsFile | undefined;
  /** Counts releases: whoever has waited since before one waits in vain. */
  #releases = 0;
  #turn: Promise<unknown> = Promise.resolve();
  /** A lock that was waited for in vain and is still under way (2.6.10): the next attempt takes it over. */
  #late: { readonly file: Deno.FsFile; readonly granted: Promise<boolean> } | undefined;

  constructor(readonly path: string, options: FileLockOptions = {}) {
    this.#exclusive = options.shared !== true;
    this.#canTry = options.canTry ?? "tryLock" in Deno.FsFile.prototype;
  }

  get held(): boolean {
    return this.#held !== undefined;
  }

  /** True when it is ours. Rejects when the file can't be opened. One after the other: a file of our own would be no less in the way. */
  take(waitMs: number): Promise<boolean> {
    const deadline = performance.now() + waitMs;
    const releases = this.#releases;
    const taken = this.#turn.then(() => this.#takeNow(deadline, releases));
    this.#turn = taken.catch(() => {});
    return taken;
  }

  /** Lets it go, and ends every wait for it. */
  release(): void {
    this.#releases++;
    // Closing the only descriptor of this open file releases its flock.
    this.#held?.close();
    this.#held = undefined;
  }

  async #takeNow(deadline: number, releases: number): Promise<boolean> {
    if (releases !== this.#releases) return false;
    if (this.#held !== undefined) return true;
    const file = this.#canTry ? await this.#poll(deadline, releases) : await this.#wait(deadline);
    if (file === undefined) return false;
    if (releases !== this.#releases) {
      file.close();
      return false;
    }
    this.#held = file;
    return true;
  }

  async #open(): Promise<Deno.FsFile> {
    return await Deno.open(this.path, { read: true, write: true, create: true, mode: 0o600 });
  }

  async #poll(deadline: number, releases: number): Promise<Deno.FsFile | undefined> {
    const file = await this.#open();
    try {
      for (;;) {
        if (await (file as unknown as TryLock).tryLock(this.#exclusive)) return file;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0 || releases !== this.#releases) break;
        await new Promise((resolve) => setTimeout(resolve, Math.min(RETRY_MS, leftMs)));
      }
    } catch (error) {
      file.close();
      throw error;
    }
    file.close();
    return undefined;
  }

  async #wait(deadline: number): Promise<Deno.FsFile | undefined> {
    const pending = this.#late ?? await this.#begin();
    this.#late = undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const bound = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), Math.max(0, deadline - performance.now()));
    });
    // A free lock is granted by another thread, which takes its moment.
    const granted = await Promise.race([pending.granted, bound.then(() => settled(pending.granted))]);
    clearTimeout(timer);
    if (granted === true) return pending.file;
    if (granted === false) {
      pending.file.close();
      throw new Error("flock failed");
    }
    this.#late = pending;
    pending.granted.then(() => {
      if (this.#late !== pending) return;
      this.#late = undefined;
      pending.file.close();
    });
    return undefined;
  }

  async #begin() {
    const file = await this.#open();
    return { file, granted: file.lock(this.#exclusive).then(() => true, () => false) };
  }
}

/** What a promise has come to within a moment. */
function settled<T>(promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout>;
  const moment = new Promise<undefined>((resolve) => timer = setTimeout(() => resolve(undefined), RETRY_MS));
  return Promise.race([promise, moment]).finally(() => clearTimeout(timer));
}
