// Owns: a directory of binaries by digest: which one runs, that it may run, taking in, listing and pruning.
// Must not: run any, or decide when to switch.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Refusal, refusal } from "../core/refusal.ts";
import type { SlotInfo, Upload } from "../runtime/binaries.ts";
import type { Executable, ReceivedBinary, SlotLinkTargets, Slots, SlotTrial } from "../runtime/slots_port.ts";
import { reason, statKey } from "./content.ts";
import { FileLock } from "./flock.ts";
import { type MinisignKey } from "./minisign.ts";
import { readKeys } from "./minisign_keys.ts";
import { SlotLinks, syncDirectory } from "./slot_links.ts";
import { isDigest, SlotPlace } from "./slot_place.ts";
import {
  checkSignature,
  discard,
  incomingPrefix,
  mostSignatureBytes,
  receive,
  writeRefusal,
  writeWhole,
} from "./slot_upload.ts";

export interface SlotRules {
  readonly publicKeys: readonly string[];
  readonly maxBytes: number;
  /** What was installed (`envoy_path`). */
  readonly installed: string;
}

/** Kept beside the current, the previous and the running ones. */
const KEPT = 3;
/** Another supervisor holds it for moments at its start, and for as long as it has a switch on trial. */
const LOCK_MS = 500;
const oldPrefix = ".old-";
const temporaryName = /^(current|previous|trial\.json)\.[0-9a-f]{8}\.tmp$/;
const BUFFER = 262_144;
/** A write in the same tick of the kernel's clock leaves mtime as it is. */
const RACY_MS = 100;

/** By a service's settings; undefined where it has no slots. */
export function slotsOf(config: {
  readonly slotsDir?: string | undefined;
  readonly binaryPublicKeys: readonly string[];
  readonly binaryMaxBytes: number;
  readonly envoyPath: string;
}): BinarySlots | undefined {
  const { slotsDir, binaryPublicKeys: publicKeys, binaryMaxBytes: maxBytes, envoyPath: installed } = config;
  return slotsDir === undefined ? undefined : new BinarySlots(slotsDir, () => ({ publicKeys, maxBytes, installed }));
}

export class BinarySlots implements Slots {
  readonly #place: SlotPlace;
  readonly #links: SlotLinks;
  readonly #lock: FileLock;
  /** By digest: the file's stat and the keys that it was found good with. */
  readonly #good = new Map<string, string>();

  constructor(readonly directory: string, private readonly rules: () => SlotRules, place = new SlotPlace(directory)) {
    this.#place = place;
    this.#links = new SlotLinks(this.#place.root);
    this.#lock = new FileLock(join(this.#place.root, ".lock"));
  }

  /** Makes the directory where there is none, and mends what a killed process has left. */
  async prepare(): Promise<{ readonly problem: string } | { readonly mended: readonly string[] }> {
    const { root } = this.#place;
    try {
      await Deno.mkdir(root, { recursive: true, mode: 0o755 });
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) return { problem: `make ${root}: ${reason(error)}` };
    }
    const unsafe = await this.#place.problem();
    if (unsafe !== undefined) return { problem: unsafe.detail };
    try {
      // A living supervisor of the same directory is in the middle of a switch, which is no remains; or this user may only read, and
      // somebody else fills the slots.
      if (await this.take() !== undefined) return { mended: [] };
      return { mended: await this.#mend() };
    } catch (error) {
      return { problem: `use slots in ${root}: ${reason(error)}` };
    } finally {
      this.#lock.release();
    }
  }

  async executable(installed = this.rules().installed): Promise<Executable> {
    const { current } = await this.#links.read();
    if (current === undefined) {
      const strange = await Deno.lstat(join(this.#place.root, "current")).then(() => true, () => false);
      if (!strange) return { kind: "found", path: installed };
      const detail = `${join(this.#place.root, "current")} does not name a slot: expected a link to a sha256`;
      return { kind: "refused", refusal: refusal("slot_unsafe", detail) };
    }
    const wrong = await this.verify(current);
    return wrong === undefined
      ? { kind: "found", path: this.#place.binaryOf(current) }
      : { kind: "refused", refusal: wrong };
  }

  /** Where a change of what runs would show. */
  get currentPath(): string {
    return join(this.#place.root, "current", "envoy");
  }

  pathOf(digest: string | undefined): string {
    return digest === undefined ? this.rules().installed : this.#place.binaryOf(digest);
  }

  /** The slot that this path is the binary of; undefined where it is none. */
  digestOf(path: string): string | undefined {
    const digest = path.split("/").at(-2) ?? "";
    return isDigest(digest) && this.#place.binaryOf(digest) === path ? digest : undefined;
  }

  /** Place, owner, modes, digest and signature; read again only when its stat changed. */
  async verify(digest: string): Promise<Refusal | undefined> {
    const unsafe = await this.#place.problem();
    if (unsafe !== undefined) return unsafe;
    const keys = await readKeys(this.rules().publicKeys);
    if (keys.kind === "unusable") return refusal("signature_invalid", keys.problem);
    const entry = await this.#place.file(digest);
    if (entry.kind === "refused") return entry.refusal;
    const good = `${statKey(entry.info)} ${keys.keys.map(({ id }) => id).join()}`;
    if (this.#good.get(digest) === good) return undefined;
    const wrong = await this.#verifyContent(digest, keys.keys).catch((error) =>
      refusal("slot_unsafe", `read ${this.#place.binaryOf(digest)}: ${reason(error)}`)
    );
    const isRacy = Math.abs(Date.now() - (entry.info.mtime?.getTime() ?? Infinity)) < RACY_MS;
    if (wrong === undefined && !isRacy) this.#good.set(digest, good);
    return wrong;
  }

  async receive(upload: Upload): Promise<ReceivedBinary> {
    const unsafe = await this.#place.problem();
    if (unsafe !== undefined) return { kind: "refused", refusal: unsafe };
    const { maxBytes, publicKeys } = this.rules();
    const keys = await readKeys(publicKeys);
    if (keys.kind === "unusable") return { kind: "refused", refusal: refusal("signature_invalid", keys.problem) };
    const received = await receive(this.#place.root, upload, { maxBytes, keys: keys.keys });
    if (received.kind === "refused") return received;
    const { directory, digest } = received;
    return { kind: "received", digest, path: join(directory, "envoy"), discard: () => discard(directory) };
  }

  async adopt(received: Extract<ReceivedBinary, { kind: "received" }>, version: string): Promise<Refusal | undefined> {
    const { digest, path } = received;
    const incoming = path.slice(0, -"/envoy".length);
    const target = this.#place.directoryOf(digest);
    try {
      if (await this.verify(digest) === undefined) return await received.discard();
      const aside = join(this.#place.root, `${oldPrefix}${crypto.randomUUID()}`);
      await Deno.rename(target, aside).catch(() => {});
      await writeWhole(join(incoming, "version"), `${version}\n`);
      await Deno.chmod(incoming, 0o755);
      await syncDirectory(incoming);
      await Deno.rename(incoming, target);
      await syncDirectory(this.#place.root);
      await discard(aside);
      return await this.verify(digest);
    } catch (error) {
      await received.discard();
      return writeRefusal(target, error);
    }
  }

  async take(): Promise<string | undefined> {
    const { path } = this.#lock;
    return await this.#lock.take(LOCK_MS).then(
      (taken) => taken ? undefined : `another supervisor holds ${path}`,
      (error) => `open ${path}: ${reason(error)}`,
    );
  }

  release(): void {
    this.#lock.release();
  }

  links(): Promise<SlotLinkTargets> {
    return this.#links.read();
  }

  async switchTo(digest: string | undefined): Promise<SlotTrial | Refusal> {
    return await this.#links.switchTo(digest).catch((error) => writeRefusal(join(this.#place.root, "current"), error));
  }

  async goBack(trial: SlotTrial): Promise<boolean | string> {
    return await this.#links.goBack(trial).catch(reason);
  }

  async accept(): Promise<string | undefined> {
    return await this.#links.removeRecord().then(() => undefined, reason);
  }

  async follow(path: string): Promise<string | undefined> {
    const now = await this.#links.read();
    const digest = this.digestOf(path);
    if (now.current === digest) return undefined;
    const previous = now.previous === digest ? undefined : now.previous;
    const links: SlotLinkTargets = {
      ...(digest === undefined ? {} : { current: digest }),
      ...(previous === undefined ? {} : { previous }),
    };
    return await this.#links.point(links).then(() => undefined, reason);
  }

  async list(runningPath: string | undefined): Promise<readonly SlotInfo[]> {
    const { current, previous } = await this.#links.read();
    const slots: SlotInfo[] = [];
    for (const digest of await this.#digests()) {
      const entry = await this.#place.file(digest);
      if (entry.kind === "refused") continue;
      const version = await Deno.readTextFile(this.#place.versionOf(digest)).catch(() => "");
      const signed = (await this.#place.file(digest, this.#place.signatureOf(digest))).kind === "there";
      const binary = this.#place.binaryOf(digest);
      slots.push({
        digest,
        ...(version === "" ? {} : { version: version.trim().slice(0, 100) }),
        sizeBytes: entry.info.size,
        atMs: entry.info.mtime?.getTime() ?? 0,
        current: digest === current,
        previous: digest === previous,
        running: binary === runningPath,
        signed,
      });
    }
    return slots.sort((one, other) => other.atMs - one.atMs);
  }

  /** `running`: paths of executables that epochs run, or may be started from again. */
  async prune(running: readonly string[]): Promise<void> {
    const { current, previous } = await this.#links.read();
    const record = await this.#links.readRecord();
    const { before, proven } = record ?? {};
    const named = [record?.digest, before?.current, before?.previous, proven?.current, proven?.previous];
    const kept = new Set([current, previous, ...named]);
    const slots = await this.list(undefined);
    for (const { digest } of slots.slice(KEPT)) {
      if (kept.has(digest) || running.includes(this.#place.binaryOf(digest))) continue;
      // Whole or gone: half a slot under its digest would be one that does not keep its word.
      const aside = join(this.#place.root, `${oldPrefix}${crypto.randomUUID()}`);
      await Deno.rename(this.#place.directoryOf(digest), aside).catch(() => {});
      await discard(aside);
      this.#good.delete(digest);
    }
  }

  async #mend(): Promise<readonly string[]> {
    const { root } = this.#place;
    const mended: string[] = [];
    for await (const { name } of Deno.readDir(root)) {
      const isLeft = name.startsWith(incomingPrefix) || name.startsWith(oldPrefix) || temporaryName.test(name);
      if (!isLeft) continue;
      await discard(join(root, name));
      mended.push(`removed ${name}, which a push that did not end has left`);
    }
    const trial = await this.#links.readRecord();
    const back = trial === undefined ? undefined : await this.#links.mend(trial);
    if (trial !== undefined && back !== undefined) {
      const to = back.current ?? this.rules().installed;
      mended.push(`went back to ${to}: ${trial.digest ?? this.rules().installed} had not proved itself`);
    }
    const { current, previous } = await this.#links.read();
    const wrong = current === undefined ? undefined : await this.verify(current);
    if (current !== undefined && wrong !== undefined) {
      const isGood = previous !== undefined && await this.verify(previous) === undefined;
      const next = isGood ? previous : undefined;
      await this.#links.point(next === undefined ? {} : { current: next });
      mended.push(`current is now ${next ?? this.rules().installed} instead of ${current}: ${wrong.detail}`);
      return mended;
    }
    const entry = previous === undefined ? undefined : await this.#place.file(previous);
    if (entry?.kind === "refused" && entry.refusal.name === "slot_unknown") {
      await this.#links.point(current === undefined ? {} : { current });
      mended.push(`removed the link previous: ${entry.refusal.detail}`);
    }
    return mended;
  }

  async #digests(): Promise<readonly string[]> {
    const names: string[] = [];
    try {
      for await (const { name } of Deno.readDir(this.#place.root)) if (isDigest(name)) names.push(name);
    } catch {
      // Removed by somebody: there is none.
    }
    return names;
  }

  async #verifyContent(digest: string, keys: readonly MinisignKey[]): Promise<Refusal | undefined> {
    const path = this.#place.binaryOf(digest);
    let sizeBytes = 0;
    const sha256 = createHash("sha256");
    const blake2b = keys.length === 0 ? undefined : createHash("blake2b512");
    {
      using file = await Deno.open(path);
      const buffer = new Uint8Array(BUFFER);
      for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
        const piece = buffer.subarray(0, count);
        sizeBytes += count;
        sha256.update(piece);
        blake2b?.update(piece);
      }
    }
    const found = sha256.digest("hex");
    if (found !== digest) {
      return refusal("digest_differs", `${path} has sha256 ${found}: expected the one in its path, is it whole?`);
    }
    if (blake2b === undefined) return undefined;
    const signature = this.#place.signatureOf(digest);
    const entry = await this.#place.file(digest, signature);
    if (entry.kind === "refused" && entry.refusal.name !== "slot_unknown") return entry.refusal;
    if (entry.kind === "there" && entry.info.size > mostSignatureBytes) {
      return refusal("signature_invalid", `${signature} has ${entry.info.size} bytes: expected a minisign signature`);
    }
    const text = entry.kind === "there" ? await Deno.readTextFile(signature) : undefined;
    const whole = () => Deno.readFile(path);
    return await checkSignature(text, keys, { blake2b512: blake2b.digest(), sizeBytes, whole }, path);
  }
}
