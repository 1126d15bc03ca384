// Owns: putting a new text into epochd.yaml: whole or not at all, with its mode and owner, and never over somebody else's edit.
// Must not: know what the text says.

import { dirname } from "node:path";
import { reason, sha256 } from "../adapters/content.ts";

export type Persisted =
  | { readonly kind: "written"; readonly digest: string }
  | { readonly kind: "refused"; readonly name: "config_read_only" | "config_file_changed"; readonly detail: string };

/** `expectedDigest`: of the text that the new one was made from. */
export async function replaceConfigFile(path: string, text: string, expectedDigest: string): Promise<Persisted> {
  const no = (name: "config_read_only" | "config_file_changed", detail: string): Persisted => {
    return { kind: "refused", name, detail };
  };
  const changed = () =>
    no(
      "config_file_changed",
      `${path} was edited since epochd read it: reload it first, or leave it alone by persist=false`,
    );
  const readOnly = (why: string) =>
    no("config_read_only", `write ${path}: ${why}; with persist=false the change applies until epochd ends`);
  let target: string;
  let info: Deno.FileInfo;
  try {
    // A link stays a link: what it leads to is replaced.
    target = await Deno.realPath(path);
    info = await Deno.stat(target);
  } catch (error) {
    return readOnly(reason(error));
  }
  // Root may write anyway; who made it read-only did not mean epochd to.
  if (((info.mode ?? 0o200) & 0o222) === 0) return readOnly(`it is read-only (mode ${octal(info.mode)})`);
  const temporary = `${target}.epochd-${Deno.pid}.tmp`;
  try {
    await Deno.remove(temporary).catch(() => {});
    {
      using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
      const bytes = new TextEncoder().encode(text);
      for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
      await keepOwner(temporary, info);
      await Deno.chmod(temporary, (info.mode ?? 0o644) & 0o7777);
      await file.sync();
    }
    // Looked at last: between this and the rename nobody can be kept from writing, but that is microseconds.
    if (sha256(await Deno.readTextFile(target)) !== expectedDigest) {
      await Deno.remove(temporary);
      return changed();
    }
    await Deno.rename(temporary, target);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    return readOnly(reason(error));
  }
  await syncDirectory(dirname(target));
  return { kind: "written", digest: sha256(text) };
}

async function keepOwner(temporary: string, { uid, gid }: Deno.FileInfo): Promise<void> {
  const own = await Deno.stat(temporary);
  if (own.uid !== uid || own.gid !== gid) await Deno.chown(temporary, uid, gid);
}

/** The name is on disk too; a file system that can't do that has no more to give. */
async function syncDirectory(path: string): Promise<void> {
  try {
    using directory = await Deno.open(path);
    await directory.sync();
  } catch { /* The content is synced, and the rename is atomic. */ }
}

function octal(mode: number | null): string {
  return ((mode ?? 0) & 0o7777).toString(8).padStart(4, "0");
}
