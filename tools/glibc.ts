/**
 * Which files of this machine's C library an executable is linked against.
 * Owns the question to the loader; it copies nothing.
 */

/** As the loader opens them; `from` is the same file without links. */
export interface SystemFile {
  readonly path: string;
  readonly from: string;
}

const GLIBC = /^(?:ld-linux-.*|lib(?:c|m|dl|rt|pthread))\.so\.\d+$/;
const PT_INTERP = 3;

export async function glibcFiles(executable: string): Promise<SystemFile[]> {
  const loader = interpreterOf(executable);
  // `ldd` does the same by a shell, which not every image has.
  const { code, stdout, stderr } = await new Deno.Command(loader, { args: ["--list", executable], stdin: "null" })
    .output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`${loader} --list ${executable} ended with ${code}: ${decoder.decode(stderr)}`);
  const words = decoder.decode(stdout).split(/\s+/).filter((word) => word.startsWith("/"));
  const paths = new Set([loader, ...words.filter((word) => GLIBC.test(word.slice(word.lastIndexOf("/") + 1)))]);
  return [...paths].sort().map((path) => ({ path, from: Deno.realPathSync(path) }));
}

/** The path of the loader that the executable itself names. */
function interpreterOf(executable: string): string {
  using file = Deno.openSync(executable);
  const read = (at: number, length: number) => {
    const bytes = new Uint8Array(length);
    file.seekSync(at, Deno.SeekMode.Start);
    if (file.readSync(bytes) !== length) throw new Error(`${executable} is cut short`);
    return new DataView(bytes.buffer);
  };
  const head = read(0, 64);
  if (head.getUint32(0) !== 0x7f454c46 || head.getUint8(4) !== 2) {
    throw new Error(`${executable} is no 64-bit ELF file`);
  }
  const [at, size, count] = [Number(head.getBigUint64(32, true)), head.getUint16(54, true), head.getUint16(56, true)];
  for (let index = 0; index < count; index++) {
    const segment = read(at + index * size, size);
    if (segment.getUint32(0, true) !== PT_INTERP) continue;
    const text = read(Number(segment.getBigUint64(8, true)), Number(segment.getBigUint64(32, true)) - 1);
    return new TextDecoder().decode(text.buffer);
  }
  throw new Error(`${executable} names no loader: it is linked statically`);
}
