// Owns: where epochd-stand-in lies. Must not: build it, or look whether it is there.

import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";

const NAME = "epochd-stand-in";

/** Beside the executable; from source where tools/native_stand_in.ts puts it. */
export function standInProgram(): string {
  return Deno.build.standalone ? join(dirname(Deno.realPathSync(Deno.execPath())), NAME) : sourceProgram();
}

/** Named by its source: several copies of the project may share one folder of tools. */
export function sourceProgram(): string {
  const source = Deno.readFileSync(new URL("./stand_in.c", import.meta.url));
  const digest = createHash("sha256").update(source).digest("hex").slice(0, 16);
  const tools = Deno.env.get("TOOLS_DIR") ?? resolve(import.meta.dirname ?? ".", "../../.tools");
  return join(tools, "cache/stand_in", `${NAME}-${digest}`);
}
