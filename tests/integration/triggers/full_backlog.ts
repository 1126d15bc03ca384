// Owns: a port whose connections are neither taken nor refused, as those to a host that is gone. Must not answer.

import { until } from "../../support/until.ts";

/** The kernel drops the SYNs of a listener that accepts nothing and has a full queue; Deno can't set the queue's length. */
const PROGRAM = `
import socket, sys, time
port = int(sys.argv[1])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(0)
waiting = []
for _ in range(4):
    one = socket.socket()
    one.setblocking(False)
    try:
        one.connect(("127.0.0.1", port))
    except BlockingIOError:
        pass
    waiting.append(one)
print("full", flush=True)
sys.stdin.read()
`;

export async function fullBacklog(port: number): Promise<AsyncDisposable> {
  const child = new Deno.Command("python3", { args: ["-c", PROGRAM, String(port)], stdin: "piped", stdout: "piped" })
    .spawn();
  const reader = child.stdout.getReader();
  await until("the queue is full", async () => (await reader.read()).value !== undefined);
  return {
    async [Symbol.asyncDispose]() {
      await child.stdin.close();
      await child.status;
      await reader.cancel();
    },
  };
}
