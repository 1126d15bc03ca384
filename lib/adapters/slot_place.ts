// Owns: where binaries lie as data (DIR/envoy/<sha256>/envoy), and whether nobody else can have put them there.
// Must not: read content, or change anything.

import { join, resolve } from "node:path";
import { type Refusal, refusal } from "../core/refusal.ts";
import { isMissing, reason } from "./content.ts";

export type Entry = { readonly kind: "there"; readonly info: Deno.FileInfo } | {
  readonly kind: "refused";
  readonly refusal: Refusal;
};

/** As the kernel: more links on one way are a loop. */
const MAX_LINKS = 40;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const SET_ID = 0o6000;

export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

export class SlotPlace {
  /** Holds slots and links. */
  readonly root: string;

  /** `inPod`: kubelet makes an emptyDir 0777; who may write there is whom the pod gives it to. */
  constructor(directory: string, readonly uid = Deno.uid(), readonly inPod = isInPod()) {
    this.root = join(resolve(directory), "envoy");
  }

  directoryOf(digest: string): string {
    if (!isDigest(digest)) throw new Error(`not a digest: ${digest}`);
    return join(this.root, digest);
  }

  binaryOf(digest: string): string {
    return join(this.directoryOf(digest), "envoy");
  }

  signatureOf(digest: string): string {
    return join(this.directoryOf(digest), "envoy.minisig");
  }

  versionOf(digest: string): string {
    return join(this.directoryOf(digest), "version");
  }

  /** Why the directory can't be trusted: whoever may write on the way to it chooses what runs. */
  async problem(): Promise<Refusal | undefined> {
    const no = (why: string) => refusal("slots_unsafe", `use slots in ${this.root}: ${why}`);
    let parts = this.root.split("/").slice(1);
    let at = "/";
    let device = -1;
    for (let links = 0; parts.length > 0;) {
      const [part = "", ...rest] = parts;
      const here = join(at, part);
      const isLast = rest.length === 0;
      try {
        const info = await Deno.lstat(here);
        const foreign = this.ownerProblem(info);
        if (foreign !== undefined) return no(`${here} ${foreign}`);
        if (info.isSymlink) {
          if (isLast || ++links > MAX_LINKS) return no(`${here} is a symbolic link, expected a directory`);
          parts = [
            ...resolve(at, await Deno.readLink(here)).split("/").slice(1).filter((name) => name !== ""),
            ...rest,
          ];
          at = "/";
          device = -1;
          continue;
        }
        if (!info.isDirectory) return no(`${here} is not a directory`);
        const mode = info.mode ?? 0;
        // In a directory such as /tmp nobody can replace what belongs to somebody else.
        const isVolume = this.inPod && device !== -1 && info.dev !== device;
        const isGuarded = !isLast && ((mode & STICKY) !== 0 || isVolume);
        device = info.dev;
        if ((mode & WRITABLE_BY_OTHERS) !== 0 && !isGuarded) return no(`${here} ${modeProblem(mode)}`);
      } catch (error) {
        return no(`${here}: ${reason(error)}`);
      }
      at = here;
      parts = rest;
    }
    return undefined;
  }

  /** The slot's own directory and the file in it, never through a link. */
  async file(digest: string, path = this.binaryOf(digest)): Promise<Entry> {
    const no = (why: string): Entry => ({ kind: "refused", refusal: refusal("slot_unsafe", why) });
    const directory = this.directoryOf(digest);
    try {
      const info = await Deno.lstat(directory);
      if (!info.isDirectory) return no(`use slot ${directory}: is not a directory`);
      const wrong = this.ownerProblem(info) ??
        (((info.mode ?? 0) & WRITABLE_BY_OTHERS) !== 0 ? modeProblem(info.mode ?? 0) : undefined);
      if (wrong !== undefined) return no(`use slot ${directory}: ${wrong}`);
    } catch (error) {
      const name = isMissing(error) ? "slot_unknown" : "slot_unsafe";
      return { kind: "refused", refusal: refusal(name, `use slot ${directory}: ${reason(error)}`) };
    }
    try {
      const info = await Deno.lstat(path);
      const mode = info.mode ?? 0;
      if (!info.isFile) return no(`use ${path}: is not a regular file`);
      const wrong = this.ownerProblem(info) ??
        ((mode & WRITABLE_BY_OTHERS) !== 0 ? modeProblem(mode) : undefined) ??
        ((mode & SET_ID) !== 0 ? `has mode ${octal(mode)}: expected one without setuid and setgid` : undefined);
      return wrong === undefined ? { kind: "there", info } : no(`use ${path}: ${wrong}`);
    } catch (error) {
      if (!isMissing(error)) return no(`use ${path}: ${reason(error)}`);
      return { kind: "refused", refusal: refusal("slot_unknown", `use ${path}: ${reason(error)}`) };
    }
  }

  private ownerProblem({ uid }: Deno.FileInfo): string | undefined {
    if (uid === null || uid === 0 || uid === this.uid) return undefined;
    return `belongs to uid ${uid}: expected root or uid ${this.uid}, as which epochd runs`;
  }
}

function isInPod(): boolean {
  return Deno.env.get("KUBERNETES_SERVICE_HOST") !== undefined;
}

function modeProblem(mode: number): string {
  return `has mode ${octal(mode)}, others may write to it: expected 0755 or less`;
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}
