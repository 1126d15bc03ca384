// Owns: the process of `epochd`: from arguments to an exit code. Must not: know a command.

import { main } from "./lib/cli/main.ts";

function endByBug(error: unknown): never {
  const text = error instanceof Error ? error.stack ?? error.message : String(error);
  Deno.stderr.writeSync(new TextEncoder().encode(`epochd: this is a bug, please report it: ${text}\n`));
  Deno.exit(70);
}

addEventListener("error", (event) => endByBug(event.error));
addEventListener("unhandledrejection", (event) => endByBug(event.reason));

try {
  Deno.exit(await main(Deno.args));
} catch (error) {
  endByBug(error);
}
