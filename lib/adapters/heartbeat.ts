// Owns: the `epoch` file of a state directory: `"<epoch> <unix ms>\n"`, the format that the Go supervisor of this design shares.
// Must not: judge whether a beat is fresh; the core does.

import { join } from "node:path";
import { reason } from "./content.ts";
import { FileLock } from "./flock.ts";
import { temporaryFor } from "./temporary.ts";

/** `epoch.lock` is held for milliseconds on both sides; somebody who holds it longer costs one beat, not the loop. */
const LOCK_WAIT_MS = 500;
/** Two beats and a half. */
const SUCCESSOR_MS = 2_500;

export interface Beat {
  readonly epoch: number;
  readonly unixMs: number;
}

export class Heartbeat {
  readonly #path: string;
  readonly #lock: FileLock;
  #own: Beat | undefined;

  constructor(stateDir: string) {
    this.#path = join(stateDir, "epoch");
    this.#lock = new FileLock(join(stateDir, "epoch.lock"));
  }

  /** Undefined for none, and for a torn or foreign text: no beat is safer than a wrong one. */
  async read(): Promise<Beat | undefined> {
    try {
      return parseBeat(await Deno.readTextFile(this.#path));
    } catch {
      return undefined;
    }
  }

  /**
   * Resolves to the problem, or undefined. Written only by who serves: a successor's that has just been written stays, and `before` is
   * not done either.
   */
  async write(beat: Beat, before: () => Promise<unknown> = () => Promise.resolve()): Promise<string | undefined> {
    const temporary = temporaryFor(this.#path);
    try {
      if (!await this.#lock.take(LOCK_WAIT_MS)) return `write heartbeat ${this.#path}: epoch.lock is held by another`;
      if (this.#isSuccessors(await this.read(), beat)) return undefined;
      await before();
      await Deno.writeTextFile(temporary, `${beat.epoch} ${beat.unixMs}\n`, { mode: 0o644 });
      await Deno.rename(temporary, this.#path);
      this.#own = beat;
      return undefined;
    } catch (error) {
      await Deno.remove(temporary).catch(() => {});
      return `write heartbeat ${this.#path}: ${reason(error)}`;
    } finally {
      this.#lock.release();
    }
  }

  /** For a moment after its LIVE the predecessor's supervisor has not seen it yet. */
  #isSuccessors(there: Beat | undefined, { epoch, unixMs }: Beat): boolean {
    if (there === undefined || there.epoch <= epoch || there.unixMs === this.#own?.unixMs) return false;
    return Math.abs(unixMs - there.unixMs) < SUCCESSOR_MS;
  }
}

export function parseBeat(text: string): Beat | undefined {
  const match = /^(\d{1,10}) (\d{1,16})\n?$/.exec(text);
  return match === null ? undefined : { epoch: Number(match[1]), unixMs: Number(match[2]) };
}
