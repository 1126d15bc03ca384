// Owns: what the first bytes of an executable say. Must not: open files, or run anything.

/** e_machine of the ELF header, by the names that `Deno.build.arch` has. */
const MACHINES: Readonly<Record<string, number>> = { x86_64: 62, aarch64: 183 };

/** Bytes of a file that `foreignHeader` needs. */
export const HEADER_BYTES = 20;

/**
 * Why the kernel can't run this, or undefined. A script (`#!`) is taken at its word.
 * Needed before every exec: glibc's execvp hands a file of a wrong format to /bin/sh (seen on Deno 2.6.10 and 2.9.8),
 * which ends with 127 as if the file were missing.
 */
export function foreignHeader(header: Uint8Array, arch: string): string | undefined {
  if (header[0] === 0x23 && header[1] === 0x21) return undefined;
  if (header.length < HEADER_BYTES || header[0] !== 0x7f || header[1] !== 0x45 || header[2] !== 0x4c || header[3] !== 0x46) {
    return "not an ELF executable";
  }
  const machine = new DataView(header.buffer, header.byteOffset).getUint16(18, header[5] !== 2);
  const wanted = MACHINES[arch];
  if (wanted === undefined || machine === wanted) return undefined;
  const name = Object.entries(MACHINES).find(([, number]) => number === machine)?.[0] ?? `ELF machine ${machine}`;
  return `built for ${name}, this machine is ${arch}`;
}
