// Owns: who holds the hot restart sockets of the base id, and whether they can be seen at all. Must not: connect to them.

import { holders, type HotRestartSocket, readHotRestartSockets } from "../adapters/hot_restart_sockets.ts";
import { fail, type Found, ok, unknown, warn } from "./finding.ts";
import { type Patient, readText } from "./patient.ts";

export async function checkBaseId({ root, config: { baseId, crossPod }, supervisor }: Patient): Promise<Found> {
  let sockets: readonly HotRestartSocket[];
  try {
    sockets = await readHotRestartSockets(baseId, `${root}/proc`);
  } catch (error) {
    return unknown(`/proc/net/unix can't be read: ${error instanceof Error ? error.message : error}`);
  }
  const slots = slotsOf(sockets);
  const own = new Set((supervisor?.epochs ?? []).map(({ epoch }) => epoch % 3));
  const foreign = slots.filter((slot) => !own.has(slot));
  if (foreign.length > 0) {
    const pids = await holders(sockets.filter(({ slot }) => foreign.includes(slot)), `${root}/proc`);
    const who = pids.length > 0
      ? `process ${pids.map((pid) => nameOf(root, pid)).join(" and ")}`
      : "a process that can't be seen from here (another user or container)";
    const found = `base id ${baseId} is held by ${who}`;
    if (crossPod) return ok(`${found}: another supervisor's Envoy, which this one takes over from (--cross-pod)`);
    return fail(
      supervisor === undefined ? found : `${found}, beside this supervisor's own epochs`,
      "stop it, or use another --base-id",
    );
  }
  if (supervisor === undefined) return ok(`base id ${baseId} is free`);
  const missing = supervisor.epochs.filter(({ role, epoch }) => role === "newest" && !slots.includes(epoch % 3));
  if (missing.length > 0) {
    return fail(
      `epoch ${missing[0]!.epoch} serves and its sockets can't be seen from here`,
      "look from the network namespace of Envoy; if that is what the supervisor does, Envoy was started without hot restart",
    );
  }
  const epochs = supervisor.epochs.map(({ epoch }) => epoch).join(" and ");
  return ok(`base id ${baseId} is held by this supervisor's epoch ${epochs}`);
}

export function checkNetworkNamespace({ root, supervisor, serving, config: { crossPod } }: Patient): Found {
  const own = namespaceOf(root, "self");
  if (own === undefined) return unknown("this process's network namespace can't be seen");
  if (supervisor === undefined || serving === undefined) {
    return crossPod
      ? warn(
        `network namespace ${own}; whether the other pod shares it shows only when it runs`,
        "--cross-pod needs hostNetwork in both pods, or another way to one network namespace",
      )
      : ok(`network namespace ${own}, for epochd and Envoy`);
  }
  const [theirs, envoys] = [namespaceOf(root, String(supervisor.pid)), namespaceOf(root, String(serving.pid))];
  if (theirs === undefined || envoys === undefined) {
    return unknown("Envoy's or epochd's network namespace can't be seen from here");
  }
  if (theirs !== envoys) {
    return fail(
      `epochd is in network namespace ${theirs} and epoch ${serving.epoch} in ${envoys}: a successor would not find it`,
      "start Envoy through epochd alone, without a wrapper that changes the namespace",
    );
  }
  if (own !== theirs) return unknown(`doctor looks from network namespace ${own}, epochd and Envoy are in ${theirs}`);
  return ok(`epochd and Envoy share network namespace ${own}`);
}

function slotsOf(sockets: readonly HotRestartSocket[]): readonly number[] {
  return [...new Set(sockets.filter(({ udp }) => !udp).map(({ slot }) => slot))].sort();
}

function namespaceOf(root: string, process: string): string | undefined {
  try {
    return Deno.readLinkSync(`${root}/proc/${process}/ns/net`).replace(/^net:/, "");
  } catch {
    return undefined;
  }
}

/** `812 (envoy)`. */
function nameOf(root: string, pid: number): string {
  const name = readText(`${root}/proc/${pid}/comm`)?.trim();
  return name === undefined ? String(pid) : `${pid} (${name})`;
}
