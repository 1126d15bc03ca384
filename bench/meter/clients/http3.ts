// Owns: HTTP/3 clients, which are a program in Python (h3_client.py), and what it tells. Must not: fail where that can't run.
import { existsSync } from "node:fs";
import { toolsDir } from "../../../tests/support/envoys.ts";
import type { Desk } from "../held.ts";
import type { LossKind } from "../tally.ts";

const program = decodeURIComponent(new URL("h3_client.py", import.meta.url).pathname);

/** Why there is no HTTP/3 client here; undefined where there is one. */
export function http3Obstacle(): string | undefined {
  return existsSync(python()) ? undefined : "aioquic is missing (tools/setup.py --bench brings it)";
}

function python(): string {
  return `${toolsDir()}/aioquic/bin/python`;
}

interface Told {
  readonly event: "ready" | "sent" | "answered" | "toldToGo" | "lost" | "session";
  readonly atMs: number;
  readonly tookMs: number;
  readonly agoMs: number;
  readonly openedAgoMs: number;
  readonly lastAgoMs: number;
  readonly kind: LossKind;
  readonly detail: string;
}

export async function http3(desk: Desk, connections: number): Promise<void> {
  const { site, phase, everyMs, sessionMs, tally } = desk;
  const flags = {
    "--host": site.hostname,
    "--port": site.quic,
    "--authority": site.authorityPath,
    "--connections": connections,
    "--every-ms": everyMs,
    "--session-ms": sessionMs,
  };
  const child = new Deno.Command(python(), {
    args: ["-u", program, ...Object.entries(flags).flat().map(String)],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    // Ctrl-C is for the meter, which ends its clients itself.
    detached: true,
  }).spawn();
  const errors = new Response(child.stderr).text();
  const writer = child.stdin.getWriter();
  const watch = setInterval(() => {
    if (!phase.leaving) return;
    clearInterval(watch);
    writer.write(new TextEncoder().encode("leave\n")).catch(() => {});
  }, 20);
  const close = () => void writer.close().catch(() => {});
  phase.over.addEventListener("abort", close);
  let open = 0;
  try {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) take(JSON.parse(line));
    }
  } finally {
    clearInterval(watch);
    phase.over.removeEventListener("abort", close);
  }
  // What was under way when the measurement ended is nobody's loss.
  for (; open > 0; open--) tally.unsent();
  const { code } = await child.status;
  if (code !== 0) throw new Error(`the HTTP/3 client ended with ${code}: ${(await errors).trim().split("\n").at(-1)}`);

  function take(told: Told): void {
    switch (told.event) {
      case "sent":
        open++;
        return tally.sent();
      case "answered":
        open--;
        return tally.answered(told.tookMs, told.atMs);
      case "toldToGo":
        return tally.toldToGo();
      case "lost":
        open--;
        return tally.lost({ kind: told.kind, sentAtMs: told.atMs - told.agoMs, atMs: told.atMs, detail: told.detail });
      case "session":
        return tally.session({ openedAtMs: told.atMs - told.openedAgoMs, lastAtMs: told.atMs - told.lastAgoMs });
      case "ready":
        return;
    }
  }
}
