// Owns: a service manager's end of NOTIFY_SOCKET in tests, and what came in. Must not: judge.

import { until } from "./until.ts";

export interface Notice {
  readonly pid: number;
  readonly lines: readonly string[];
}

export interface NotifyPeer extends AsyncDisposable {
  readonly address: string;
  readonly notices: readonly Notice[];
  /** All lines, in order; those of one pid where one is given. */
  lines(pid?: number): string[];
}

/** In Python: Deno has no abstract datagram sockets before 2.9. */
export async function notifyPeer(address: string): Promise<NotifyPeer> {
  const script = decodeURIComponent(new URL("notify_peer.py", import.meta.url).pathname);
  const child = new Deno.Command("python3", { args: [script, address], stdin: "null", stdout: "piped" }).spawn();
  const notices: Notice[] = [];
  let isListening = false;
  const read = (async () => {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const said = JSON.parse(line);
        if ("listening" in said) isListening = true;
        else notices.push(said);
      }
    }
  })();
  await until("the peer listens", () => isListening);
  return {
    address,
    notices,
    lines: (pid) => notices.filter((notice) => pid === undefined || notice.pid === pid).flatMap(({ lines }) => lines),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
      await read;
    },
  };
}
