// Owns: the links `current` and `previous` of a directory of slots and the record of a switch that is on trial: whatever ends a process
// in between, the record says how to get back. Must not: decide when, or look into a slot.

import { join } from "node:path";
import type { SlotLinkTargets, SlotTrial } from "../runtime/slots_port.ts";
import { isMissing } from "./content.ts";
import { isDigest } from "./slot_place.ts";
import { temporaryFor } from "./temporary.ts";

type Links = SlotLinkTargets;
type Name = keyof Links;

export class SlotLinks {
  constructor(private readonly root: string) {}

  /** A link that names no digest counts as none: nothing outside the directory is ever followed. */
  async read(): Promise<Links> {
    const [current, previous] = await Promise.all([this.target("current"), this.target("previous")]);
    return { ...(current === undefined ? {} : { current }), ...(previous === undefined ? {} : { previous }) };
  }

  /**
   * Record, `previous`, `current`: in this order, so that the record is there before anything has changed. Rejects as files do; links
   * and the record of a trial that goes on are then as they were.
   */
  async switchTo(digest: string | undefined): Promise<SlotTrial> {
    const before = await this.read();
    const earlier = await this.readRecord();
    const isOnTrial = earlier !== undefined && earlier.digest === before.current;
    const trial: SlotTrial = {
      before,
      ...(digest === undefined ? {} : { digest }),
      ...(isOnTrial ? { proven: earlier.proven ?? earlier.before } : {}),
    };
    await this.writeRecord(trial);
    try {
      if (before.current !== digest) await this.set("previous", before.current);
      await this.set("current", digest);
    } catch (error) {
      await this.takeBack(trial, earlier).catch(() => {});
      throw error;
    }
    return trial;
  }

  /** Both as they were, unless somebody else has moved `current` meanwhile. False: left as it is. */
  async goBack({ digest, before }: SlotTrial, to: Links = before): Promise<boolean> {
    const now = await this.read();
    // Killed between the two, on the way there or back, `current` is still what it was, or again.
    const isOurs = [digest, before.current, to.current].includes(now.current);
    if (isOurs) {
      await this.set("current", to.current);
      await this.set("previous", to.previous);
    }
    await this.removeRecord();
    return isOurs;
  }

  /** After a kill: what had not proved itself is not taken for proven because something else was tried after it. */
  async mend(trial: SlotTrial): Promise<SlotLinkTargets | undefined> {
    const to = trial.proven ?? trial.before;
    return await this.goBack(trial, to) ? to : undefined;
  }

  /** Of no use any more: links, and the record of the trial that was before. */
  async takeBack(trial: SlotTrial, earlier: SlotTrial | undefined): Promise<boolean> {
    const isOurs = await this.goBack(trial);
    if (earlier !== undefined) await this.writeRecord(earlier);
    return isOurs;
  }

  /** Without a trial: `current` is put where it should be. */
  async point(links: Links): Promise<void> {
    await this.set("previous", links.previous);
    await this.set("current", links.current);
  }

  async readRecord(): Promise<SlotTrial | undefined> {
    try {
      const record = JSON.parse(await Deno.readTextFile(this.recordPath)) as Partial<SlotTrial>;
      const { digest, before, proven } = record;
      if (!areTargets(before) || !(proven === undefined || areTargets(proven))) return undefined;
      if (!isDigestOrNone(digest)) return undefined;
      return {
        before,
        ...(digest === undefined ? {} : { digest }),
        ...(proven === undefined ? {} : { proven }),
      };
    } catch {
      return undefined;
    }
  }

  async removeRecord(): Promise<void> {
    try {
      await Deno.remove(this.recordPath);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    await syncDirectory(this.root);
  }

  private get recordPath(): string {
    return join(this.root, "trial.json");
  }

  private async target(name: Name): Promise<string | undefined> {
    const target = await Deno.readLink(join(this.root, name)).catch(() => undefined);
    return target !== undefined && isDigest(target) ? target : undefined;
  }

  private async set(name: Name, digest: string | undefined): Promise<void> {
    const path = join(this.root, name);
    if (await this.target(name) === digest && (digest !== undefined || !await isThere(path))) return;
    if (digest === undefined) await Deno.remove(path);
    else {
      const temporary = temporaryFor(path);
      await Deno.remove(temporary).catch(() => {});
      await Deno.symlink(digest, temporary);
      await Deno.rename(temporary, path);
    }
    await syncDirectory(this.root);
  }

  private async writeRecord(trial: SlotTrial): Promise<void> {
    const temporary = temporaryFor(this.recordPath);
    await Deno.remove(temporary).catch(() => {});
    {
      using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
      const bytes = new TextEncoder().encode(`${JSON.stringify(trial)}\n`);
      for (let sent = 0; sent < bytes.length;) sent += await file.write(bytes.subarray(sent));
      await file.sync();
    }
    await Deno.rename(temporary, this.recordPath);
    await syncDirectory(this.root);
  }
}

function areTargets(value: unknown): value is Links {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  const { current, previous } = value as Record<string, unknown>;
  return isDigestOrNone(current) && isDigestOrNone(previous);
}

function isDigestOrNone(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === "string" && isDigest(value));
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

/** A rename is on the disk when its directory is. */
export async function syncDirectory(path: string): Promise<void> {
  using directory = await Deno.open(path);
  try {
    await directory.sync();
  } catch (error) {
    // File systems without it (EINVAL) have nothing to sync.
    if (!/os error 22\b/.test(String(error))) throw error;
  }
}
