// Owns: whether and where a service manager listens (NOTIFY_SOCKET), and what it is told by. Must not: hold up or end a start for it.

import { openNotifySocket } from "../adapters/notify_socket.ts";
import { Manager, watchdogMsOf } from "../observe/manager.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Supervisor } from "../runtime/supervisor.ts";
import type { UpgradeStatus } from "../runtime/upgrade_status.ts";

/** Undefined where nobody listens; a socket that can't be used is told once. */
export function openManager(
  supervisor: Supervisor,
  upgrade: () => UpgradeStatus | undefined,
  tell: (fact: ShellFact) => void,
  predecessorLives: (() => boolean) | undefined,
): Manager | undefined {
  const address = Deno.env.get("NOTIFY_SOCKET") ?? "";
  if (address === "") return undefined;
  const problem = (text: string) => tell({ kind: "notify_failed", problem: text });
  const socket = openNotifySocket(address);
  if ("problem" in socket) {
    problem(socket.problem);
    return undefined;
  }
  const watchdogMs = watchdogMsOf((name) => Deno.env.get(name), Deno.pid);
  return new Manager({
    send: (text) => socket.send(text),
    monotonicUsec: () => socket.monotonicUsec(),
    status: () => {
      const itself = upgrade();
      return { ...supervisor.status(), ...(itself && { upgrade: itself }) };
    },
    pulse: (seen) => supervisor.pulse(seen),
    problem,
    pid: Deno.pid,
    isMain: () => predecessorLives?.() !== true,
    ...(watchdogMs === undefined ? {} : { watchdogMs }),
  });
}
