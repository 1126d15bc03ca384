// Owns: which files of this machine's C library an executable needs. Must not: copy them.
import { isAbsolute } from "node:path";

const GLIBC = /^(?:ld-linux-.*|lib(?:c|m|dl|rt|pthread))\.so\.\d+$/;

/** Paths as the loader asks for them: the loader itself, libc and its satellites, whichever the executable names. */
export async function glibcOf(executable: string): Promise<string[]> {
  const { stdout } = await new Deno.Command("ldd", { args: [executable], stdin: "null", stderr: "null" }).output();
  const words = new TextDecoder().decode(stdout).split(/\s+/);
  return [...new Set(words.filter((word) => isAbsolute(word) && GLIBC.test(word.split("/").at(-1)!)))].sort();
}
