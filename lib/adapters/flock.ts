// Owns: one flock(2) lock file with bounded waits, shared with other programs. Must not: hold it longer than it is asked to.

/** `tryLock` came with Deno 2.7; on 2.6.10 a waiting lock can't be cancelled, so one that comes too late is let go at once. */
interface TryLock {
  tryLock(exclusive: boolean): Promise<boolean>;
}

const RETRY_MS = 20;

export class FileLock {
  #held: Deno.FsFile | undefined;
  /** A lock that was waited for in vain and is still under way (2.6.10): the next attempt takes it over. */
  #late: { readonly file: Deno.FsFile; readonly granted: Promise<boolean> } | undefined;

  constructor(readonly path: string) {}

  get held(): boolean {
    return this.#held !== undefined;
  }

  /** True when it is ours. Rejects when the file can't be opened. */
  async take(waitMs: number): Promise<boolean> {
    if (this.#held !== undefined) return true;
    const deadline = performance.now() + waitMs;
    if ("tryLock" in Deno.FsFile.prototype) return await this.#poll(deadline);
    return await this.#wait(deadline);
  }

  release(): void {
    // Closing the only descriptor of this open file releases its flock.
    this.#held?.close();
    this.#held = undefined;
  }

  async #open(): Promise<Deno.FsFile> {
    return await Deno.open(this.path, { read: true, write: true, create: true, mode: 0o600 });
  }

  async #poll(deadline: number): Promise<boolean> {
    const file = await this.#open();
    for (;;) {
      if (await (file as unknown as TryLock).tryLock(true)) {
        this.#held = file;
        return true;
      }
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) break;
      await new Promise((resolve) => setTimeout(resolve, Math.min(RETRY_MS, leftMs)));
    }
    file.close();
    return false;
  }

  async #wait(deadline: number): Promise<boolean> {
    const pending = this.#late ?? await this.#begin();
    this.#late = pending;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const bound = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), Math.max(0, deadline - performance.now()));
    });
    const granted = await Promise.race([pending.granted, bound]);
    clearTimeout(timer);
    // Another call may have taken it over or let it go meanwhile.
    if (this.#late !== pending) return false;
    if (granted === undefined) {
      pending.granted.then(() => {
        if (this.#late !== pending) return;
        this.#late = undefined;
        pending.file.close();
      });
      return false;
    }
    this.#late = undefined;
    if (granted) this.#held = pending.file;
    else pending.file.close();
    return granted;
  }

  async #begin() {
    const file = await this.#open();
    return { file, granted: file.lock(true).then(() => true, () => false) };
  }
}
