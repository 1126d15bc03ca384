// Owns: the ways of running epochd that single scenarios need: behind a shell, in namespaces, with fewer rights.
// Must not: know what is tried there.

import { epochdCommand, type Program } from "../../support/epochd.ts";

export const isRoot = Deno.uid() === 0;

/** `script` runs `epochd run` (as `"$@"`); other commands of epochd run plainly. */
export function behind(script: string): Program {
  const choose = `case "$*" in *--base-id*) ${script};; *) exec "$@";; esac`;
  return ["sh", "-c", choose, "sh", ...epochdCommand()];
}

/** Root may read everything, unless it gives that up: then a file's mode counts for it as for anybody. */
export function bySomebodyWhomModesBind(): Program {
  const program = epochdCommand();
  return isRoot ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--", ...program] : program;
}

/** Whether this machine lets us run something like this at all (user namespaces may be switched off). */
export async function canRun(command: string, ...args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args, stdin: "null", stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

export async function mustRun(command: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args, stdin: "null", stdout: "null", stderr: "piped" })
    .output();
  if (!success) throw new Error(`${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}
