// Owns: the process of `epochd-probe`. Must not: import more than lib/probe: it is started every 2 s.

import { probe } from "./lib/probe/main.ts";

const { exitCode, stdout, stderr } = probe(Deno.args, Date.now());
try {
  if (stdout !== "") Deno.stdout.writeSync(new TextEncoder().encode(stdout));
  if (stderr !== "") Deno.stderr.writeSync(new TextEncoder().encode(stderr));
} catch { /* The exit code is the answer. */ }
Deno.exit(exitCode);
