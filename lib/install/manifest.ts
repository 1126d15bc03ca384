// Owns: SHA256SUMS, the list of what belongs together and how each file must read. Must not: read or write files.

/** Everything a node or an image needs; the supervisor comes last, so that it never runs beside an older library. */
export const programFiles = ["libgcc_s.so.1", "epochd-probe", "epochd-launch", "epochd-stand-in", "epochd"] as const;
export type ProgramFile = typeof programFiles[number];
export const manifestName = "SHA256SUMS" as const;
export type InstalledName = ProgramFile | typeof manifestName;

export type Manifest = Readonly<Record<ProgramFile, string>>;

/** As `sha256sum` writes and checks it. */
export function formatManifest(manifest: Manifest): string {
  return programFiles.map((name) => `${manifest[name]}  ${name}\n`).join("");
}

/** The manifest, or what is wrong with the text. Names that are not ours are left alone. */
export function parseManifest(text: string): Manifest | string {
  const digests = new Map<string, string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, digest, name] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    if (digest === undefined || name === undefined) return `expected lines of sha256sum, found ${JSON.stringify(line)}`;
    digests.set(name, digest);
  }
  const missing = programFiles.find((name) => !digests.has(name));
  if (missing !== undefined) return `it does not name ${missing}`;
  return Object.fromEntries(programFiles.map((name) => [name, digests.get(name)!])) as Manifest;
}

/** Executables are for everyone to run, the library is for them to load. */
export function modeOf(name: InstalledName): number {
  return name.startsWith("epochd") ? 0o755 : 0o644;
}
