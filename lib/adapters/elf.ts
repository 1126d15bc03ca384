// Owns: what the first bytes of an executable say. Must not: open files, or run anything.

/** e_machine of the ELF header, by the names that `Deno.build.arch` has. */
const MACHINES: Readonly<Record<string, number>> = { x86_64: 62, aarch64: 183 };

/** The whole header of a 64-bit ELF file. */
export const ELF_HEADER_BYTES = 64;

/**
 * Why the kernel can't run this, or undefined. A script (`#!`) is taken at its word.
 * Needed before every exec: glibc's execvp hands a file of a wrong format to /bin/sh (seen on Deno 2.6.10 and 2.9.8),
 * which ends with 127 as if the file were missing.
 */
export function foreignHeader(header: Uint8Array, arch: string): string | undefined {
  if (isScript(header)) return undefined;
  if (!isElf(header)) return "not an ELF executable";
  const machine = view(header).getUint16(18, header[5] !== 2);
  const wanted = MACHINES[arch];
  if (wanted === undefined || machine === wanted) return undefined;
  const name = Object.entries(MACHINES).find(([, number]) => number === machine)?.[0] ?? `ELF machine ${machine}`;
  return `built for ${name}, this machine is ${arch}`;
}

/** How long a 64-bit ELF file must be at least, by where its section headers end (its last bytes); 0 where that can't be told. */
export function elfSize(header: Uint8Array): number {
  if (!isElf(header) || header.length < ELF_HEADER_BYTES || header[4] !== 2 || header[5] !== 1) return 0;
  const at = Number(view(header).getBigUint64(40, true));
  return at + view(header).getUint16(58, true) * view(header).getUint16(60, true);
}

function isScript(header: Uint8Array): boolean {
  return header[0] === 0x23 && header[1] === 0x21;
}

function isElf(header: Uint8Array): boolean {
  return header.length >= 20 && [0x7f, 0x45, 0x4c, 0x46].every((byte, i) => header[i] === byte);
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
