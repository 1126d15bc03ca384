// Owns: the process of `epochd`: from arguments to an exit code. Must not: know a command.

import { main } from "./lib/cli/main.ts";

/** A blocked stderr must not hold up the end, and a synchronous write would wait for the log's asynchronous one. */
const TELL_MS = 1_000;

async function endByBug(error: unknown): Promise<never> {
  const text = error instanceof Error ? error.stack ?? error.message : String(error);
  const told = Deno.stderr.write(new TextEncoder().encode(`epochd: this is a bug, please report it: ${text}\n`));
  await Promise.race([told.catch(() => {}), new Promise((resolve) => setTimeout(resolve, TELL_MS))]);
  Deno.exit(70);
}

// Prevented: the runtime would print it by itself, synchronously, and end with 1.
addEventListener("error", (event) => {
  event.preventDefault();
  void endByBug(event.error);
});
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  void endByBug(event.reason);
});

try {
  Deno.exit(await main(Deno.args));
} catch (error) {
  await endByBug(error);
}
