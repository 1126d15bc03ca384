// Owns: handing a directory of the node to the user that epochd runs as. Must not: touch what lies in it.

import { reason } from "../adapters/content.ts";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export function parseOwner(text: string): Owner | undefined {
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? [];
  const [u, g] = [Number(uid), Number(gid)];
  return uid !== undefined && u < 2 ** 32 - 1 && g < 2 ** 32 - 1 ? { uid: u, gid: g } : undefined;
}

export type Prepared =
  | { readonly kind: "prepared"; readonly path: string; readonly changed: boolean }
  | { readonly kind: "failed"; readonly problem: string };

/** kubelet makes host paths for root; others may neither read snapshots of bootstraps there nor plant their own. */
const MODE = 0o700;

export async function prepareHostDir(path: string, owner: Owner): Promise<Prepared> {
  const failed = (why: string): Prepared => ({ kind: "failed", problem: `prepare ${path}: ${why}` });
  try {
    await Deno.mkdir(path, { recursive: true, mode: MODE });
    const info = await Deno.lstat(path);
    // Through a link, whoever may write beside it would choose what root gives away.
    if (info.isSymlink) return failed("it is a symbolic link, expected a directory");
    if (!info.isDirectory) return failed("it is not a directory");
    const isOwned = info.uid === owner.uid && info.gid === owner.gid;
    const isClosed = ((info.mode ?? 0) & 0o7777) === MODE;
    // While it still belongs to root: afterwards chmod would need one more capability.
    if (!isClosed) await Deno.chmod(path, MODE);
    if (!isOwned) await Deno.chown(path, owner.uid, owner.gid);
    return { kind: "prepared", path, changed: !isOwned || !isClosed };
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return failed("it is not a directory");
    return failed(reason(error));
  }
}
