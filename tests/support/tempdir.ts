// Owns: a scratch directory per test, removed at its end. Must not hold anything that outlives the test.

export interface TempDir extends AsyncDisposable {
  readonly path: string;
  /** A path below the directory; nothing is created. */
  at(...parts: string[]): string;
  /** Writes a file and returns its path. */
  write(name: string, text: string): string;
}

export function tempDir(): TempDir {
  // Short, because unix socket paths end at 107 bytes.
  const path = Deno.makeTempDirSync({ prefix: "epd-" });
  const at = (...parts: string[]) => [path, ...parts].join("/");
  return {
    path,
    at,
    write(name, text) {
      const file = at(name);
      Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true });
      Deno.writeTextFileSync(file, text);
      return file;
    },
    async [Symbol.asyncDispose]() {
      try {
        await Deno.remove(path, { recursive: true });
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    },
  };
}
