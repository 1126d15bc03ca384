// Owns: names of files on their way to their own name. Must not: create or remove any.

/** Drawn once: pids repeat across PID namespaces, and two supervisors may write one directory. */
const own = crypto.randomUUID().slice(0, 8);

/** A name beside `path` that no other process uses. */
export function temporaryFor(path: string): string {
  return `${path}.${own}.tmp`;
}
