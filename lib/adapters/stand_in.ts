// Owns: running epochd-stand-in, and what its end means. Must not: decide whether one is needed, or leave one behind.
// Use from the main isolate only: it ends with the thread that spawned it.

import type { StandInEnd } from "../core/event.ts";
import type { StandIn, StandIns } from "../runtime/ports.ts";
import { exitCodes, upLine } from "../stand_in/exit_codes.ts";
import { reason } from "./content.ts";

export class NativeStandIns implements StandIns {
  constructor(
    private readonly baseId: number,
    private readonly program: () => string,
    /** The Envoys live on when this supervisor dies, so that what keeps one of them alive has to. */
    private readonly outlives: () => boolean = () => false,
  ) {}

  begin({ epoch, boundMs, isPrecaution }: Parameters<StandIns["begin"]>[0]): StandIn {
    const outlives = isPrecaution !== true && this.outlives();
    let path = "epochd-stand-in";
    try {
      path = this.program();
      const child = new Deno.Command(path, {
        args: [this.baseId, epoch, Math.ceil(boundMs), ...(outlives ? ["outlive"] : [])].map(String),
        // Its own session: Ctrl-C is not for it.
        detached: true,
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      return {
        began: began(child),
        end: ended(child, path),
        stop: () => {
          try {
            child.kill("SIGKILL");
          } catch {
            // It has ended by itself.
          }
        },
      };
    } catch (error) {
      const problem = error instanceof Deno.errors.NotFound
        ? `run ${path}: no such file, expected it beside epochd (epochd install brings both)`
        : `run ${path}: ${reason(error)}`;
      return { began: Promise.resolve(undefined), end: Promise.resolve({ kind: "failed", problem }), stop: () => {} };
    }
  }
}

/** Its pid once it has the name; undefined where it never had. */
async function began({ stdout, pid }: Deno.ChildProcess): Promise<number | undefined> {
  let text = "";
  try {
    for await (const part of stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.includes(upLine)) return pid;
    }
  } catch {
    // It never said so.
  }
  return undefined;
}

async function ended(child: Deno.ChildProcess, path: string): Promise<StandInEnd> {
  const said = new Response(child.stderr).text().catch(() => "");
  const { code, signal } = await child.status;
  switch (signal === null ? code : undefined) {
    case exitCodes.terminated:
      await said;
      return { kind: "terminated" };
    case exitCodes.boundOver:
      await said;
      return { kind: "bound_over" };
    default: {
      const line = (await said).trim().split("\n").at(-1)?.replace(/^error: /, "");
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      const kind = code === exitCodes.nameTaken && signal === null ? "name_taken" : "failed";
      return { kind, problem: `${path} ended with ${how}${line ? `: ${line}` : ""}` };
    }
  }
}
