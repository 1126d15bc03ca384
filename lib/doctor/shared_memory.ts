// Owns: whether Envoy's shared segment can be made, found and used by the next epoch. Must not: repair it.

import { SharedMemory } from "../adapters/shared_memory.ts";
import { fail, type Found, ok, unknown, warn } from "./finding.ts";
import { type Patient, readText } from "./patient.ts";

export function checkShmDir({ root }: Patient): Found {
  const path = `${root}/dev/shm`;
  const mount =
    "mount a tmpfs there (Kubernetes: an emptyDir with medium Memory), writable by the user of Envoy and epochd";
  try {
    const info = Deno.statSync(path);
    if (!info.isDirectory) return fail(`${path} is no directory`, mount);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return fail(`${path} does not exist`, mount);
    return fail(`${path} can't be looked at: ${messageOf(error)}`, mount);
  }
  const probe = `${path}/.epochd-doctor-${Deno.pid}`;
  try {
    // A segment is one page.
    Deno.writeFileSync(probe, new Uint8Array(4096), { createNew: true, mode: 0o600 });
  } catch (error) {
    return fail(`${path} can't be written by uid ${Deno.uid()}: ${messageOf(error)}`, mount);
  } finally {
    try {
      Deno.removeSync(probe);
    } catch { /* It was not made. */ }
  }
  const type = mountType(root);
  if (type !== undefined && type !== "tmpfs") {
    return warn(
      `${path} is writable, on ${type}`,
      "a tmpfs is what Envoy expects: shared memory on a disk outlives a boot",
    );
  }
  return ok(`${path} is writable${type === undefined ? "" : `, a ${type}`}`);
}

/** The last mount that covers /dev/shm. */
function mountType(root: string): string | undefined {
  const lines = readText(`${root}/proc/self/mountinfo`)?.split("\n") ?? [];
  let best: { readonly point: string; readonly type: string } | undefined;
  for (const line of lines) {
    const [left, right] = line.split(" - ");
    const point = left?.split(" ")[4];
    const type = right?.split(" ")[0];
    if (point === undefined || type === undefined) continue;
    const covers = point === "/" || point === "/dev/shm" || point === "/dev";
    if (covers && point.length >= (best?.point.length ?? 0)) best = { point, type };
  }
  return best?.type;
}

export async function checkSegment(patient: Patient): Promise<Found> {
  const { root, config: { baseId }, supervisor, serving } = patient;
  const memory = new SharedMemory(baseId, { shmDir: `${root}/dev/shm`, procDir: `${root}/proc` });
  const { path } = memory;
  const look = await memory.look();
  const remove = `remove ${path} if nothing uses it, or use another --base-id`;
  switch (look.kind) {
    case "absent":
      if (serving === undefined) return ok(`${path} does not exist, epoch 0 makes it`);
      return fail(
        `${path} does not exist while epoch ${serving.epoch} serves: no epoch can join it any more`,
        "find out who removes files from /dev/shm, or who mounts over it; then start the supervisor again",
      );
    case "unreadable":
      return fail(`${path} can't be used: ${look.why}`, remove);
    case "present":
  }
  if (!look.ours) {
    const found = `${path} belongs to uid ${look.uid}, Envoy and epochd run as uid ${Deno.uid()}`;
    if (Deno.uid() === 0) {
      return serving === undefined ? ok(`${found}; root's epoch 0 replaces it`) : warn(found, remove);
    }
    return fail(found, `run as uid ${look.uid}, or ${remove}`);
  }
  if (look.header === undefined || look.header.sizeBytes !== look.sizeBytes) {
    return fail(`${path} was not made by an Envoy with hot restart (${look.sizeBytes} bytes)`, remove);
  }
  if (look.initializing === undefined) {
    const layout = `${look.header.layout}.${look.sizeBytes}`;
    return warn(
      `${path} has layout ${layout}, which this epochd does not know: it can't mend it after a failed successor`,
      "look for a newer epochd before you use this Envoy",
    );
  }
  const elsewhere = await seenElsewhere(patient, path);
  if (elsewhere !== undefined) return elsewhere;
  const said = `${path} is uid ${look.uid}'s, layout ${look.header.layout}.${look.sizeBytes}`;
  if (!look.initializing) return ok(`${said}, no epoch initialises`);
  if (supervisor?.epochs.some(({ role }) => role === "child") === true) return ok(`${said}, an epoch initialises now`);
  if (supervisor !== undefined) {
    return warn(
      `${said}, and says that an epoch initialises while none does: a child died`,
      "nothing: epochd clears the flag before its next handoff; `epochd restart --wait` does it now",
    );
  }
  if ((await memory.sockets()).length === 0) return ok(`${said}, poisoned by a child that died; epoch 0 makes it anew`);
  return fail(
    `${said}, poisoned: it says that an epoch initialises, and each further one ends at once`,
    "let `epochd run` supervise that Envoy, or stop it and start afresh",
  );
}

/** Envoy's own /dev/shm may be another mount than this one (a sidecar, another container). */
async function seenElsewhere({ root, serving }: Patient, path: string): Promise<Found | undefined> {
  if (serving === undefined) return undefined;
  const theirs = `${root}/proc/${serving.pid}/root${path.slice(root.length)}`;
  try {
    const [own, other] = await Promise.all([Deno.stat(path), Deno.stat(theirs)]);
    if (own.ino === other.ino && own.dev === other.dev) return undefined;
    return fail(
      `${path} is not the file that epoch ${serving.epoch} (pid ${serving.pid}) uses`,
      "run supervisor, Envoy and doctor with one /dev/shm",
    );
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      return fail(
        `epoch ${serving.epoch} (pid ${serving.pid}) has no ${path} of its own`,
        "share /dev/shm between both containers",
      );
    }
    return unknown(`${path} is there; whether epoch ${serving.epoch} uses the same can't be seen: ${messageOf(error)}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
