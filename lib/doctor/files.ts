// Owns: whether the files and directories that epochd works with can be used: watched files, state directory, marker, descriptors.
// Must not: create what is missing.

import { dirname } from "node:path";
import { fail, type Found, ok, unknown, warn } from "./finding.ts";
import { type Patient, readText } from "./patient.ts";

export function checkWatch({ root, config }: Patient): readonly Found[] {
  const { watchConfig, watchBinary, envoyConfig, envoyPath, slotsDir, pollMs } = config;
  const slots = slotsDir === undefined ? [] : [`${slotsDir}/envoy/current`];
  const watched = [...(watchConfig ? [envoyConfig] : []), ...(watchBinary ? [envoyPath, ...slots] : [])];
  if (watched.length === 0) return [ok("nothing is watched")];
  const findings: Found[] = [];
  // kubelet swaps a ConfigMap's directory; a single file of it (subPath) is mounted once and stays what it was.
  const points = (readText(`${root}/proc/self/mountinfo`) ?? "").split("\n").map((line) => line.split(" ")[4]);
  for (const path of watched) {
    if (!points.includes(path)) continue;
    findings.push(warn(
      `${path} is a mount of its own: a ConfigMap's file mounted by subPath never changes`,
      "mount the directory of the ConfigMap, without subPath",
    ));
  }
  const directories = new Set(watched.map((path) => dirname(path)));
  for (const directory of directories) {
    try {
      Deno.watchFs(directory, { recursive: false }).close();
    } catch (error) {
      findings.push(warn(
        `${directory} can't be watched (${messageOf(error)}): epochd looks at its files every ${
          pollMs / 1000
        } s instead`,
        "raise fs.inotify.max_user_instances and fs.inotify.max_user_watches, or check the directory's permissions",
      ));
    }
  }
  return findings.length > 0 ? findings : [ok(`${[...directories].join(" and ")} can be watched`)];
}

export function checkStateDir({ config: { stateDir } }: Patient): Found {
  const info = infoOf(stateDir);
  if (info === undefined) {
    const above = nearestAbove(stateDir);
    const wrong = writeProblem(above);
    if (wrong === undefined) return ok(`${stateDir} does not exist, epochd makes it`);
    return fail(
      `${stateDir} does not exist and can't be made: ${wrong}`,
      `make it with mode 0700, owned by uid ${Deno.uid()}`,
    );
  }
  if (!info.isDirectory) return fail(`${stateDir} is no directory`, "remove it, or use another --state-dir");
  const uid = Deno.uid();
  if (info.uid !== null && info.uid !== uid && uid !== 0) {
    return fail(`${stateDir} belongs to uid ${info.uid}, epochd runs as uid ${uid}`, `chown ${uid} ${stateDir}`);
  }
  const wrong = writeProblem(stateDir);
  if (wrong !== undefined) return fail(wrong, "make room there, mount it writable, or use another --state-dir");
  return ok(`${stateDir} can be written`);
}

export function checkMarker({ config: { readyMarker }, inPod }: Patient): Found {
  if (readyMarker === undefined) {
    return inPod
      ? warn(
        "no ready marker in a pod: kubelet can't see that the service is ready",
        "set --ready-marker, and probe it with epochd-probe",
      )
      : ok("no ready marker is asked for");
  }
  const info = infoOf(readyMarker);
  if (info?.isSymlink === true || info?.isDirectory === true) {
    return fail(
      `${readyMarker} is a ${info.isSymlink ? "symbolic link" : "directory"}`,
      "remove it: epochd makes a file there",
    );
  }
  const directory = dirname(readyMarker);
  if (infoOf(directory) === undefined) {
    return fail(`${directory} does not exist`, `make it, writable by uid ${Deno.uid()}`);
  }
  const wrong = writeProblem(directory);
  return wrong === undefined
    ? ok(`${readyMarker} can be written`)
    : fail(wrong, "mount it writable, or use another --ready-marker");
}

/** A soft limit this low is a shell's default, not a proxy's. */
const fewDescriptors = 4_096;

export function checkDescriptors({ root, supervisor, serving }: Patient): Found {
  const limits = readText(`${root}/proc/${supervisor?.pid ?? "self"}/limits`);
  const soft = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits ?? "")?.[1];
  if (soft === undefined) return unknown("the limit of open files can't be seen");
  const limit = soft === "unlimited" ? Infinity : Number(soft);
  const used = serving === undefined ? undefined : openFiles(root, serving.pid);
  const raise = "raise it before epochd starts (systemd: LimitNOFILE, containers: the runtime's ulimit)";
  const said = `each epoch may open ${soft} files${used === undefined ? "" : `, epoch ${serving!.epoch} has ${used}`}`;
  // Each generation has the limit for itself; what both open together counts for the machine.
  if (used !== undefined && used > 0.8 * limit) return fail(`${said}: its successor would reach the limit too`, raise);
  const [allocated = NaN, , most = NaN] = (readText(`${root}/proc/sys/fs/file-nr`) ?? "").trim().split(/\s+/).map(
    Number,
  );
  if (used !== undefined && allocated + used > most) {
    return fail(
      `${said}; the machine has ${allocated} of ${most} open, too many for a second epoch`,
      "raise fs.file-max",
    );
  }
  return limit < fewDescriptors ? warn(said, raise) : ok(said);
}

function openFiles(root: string, pid: number): number | undefined {
  try {
    return [...Deno.readDirSync(`${root}/proc/${pid}/fd`)].length;
  } catch {
    return undefined;
  }
}

function infoOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined;
  }
}

function nearestAbove(path: string): string {
  let above = path;
  while (infoOf(above) === undefined && above.includes("/")) above = above.slice(0, above.lastIndexOf("/"));
  return above === "" ? "/" : above;
}

function writeProblem(directory: string): string | undefined {
  const probe = `${directory}/.epochd-doctor-${Deno.pid}`;
  try {
    Deno.writeFileSync(probe, new Uint8Array(4096), { createNew: true, mode: 0o600 });
    return undefined;
  } catch (error) {
    return `${directory} can't be written: ${messageOf(error)}`;
  } finally {
    try {
      Deno.removeSync(probe);
    } catch { /* It was not made. */ }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
