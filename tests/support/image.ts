// Owns: container images made of single files, as docker archives, without a daemon or a registry; the same files give the same
// bytes. Must not: know what is in them.
import { createHash } from "node:crypto";

export interface ImageFile {
  /** In the image: `/usr/local/bin/envoy`. Directories above it are made. */
  readonly path: string;
  readonly from: string | Uint8Array;
  readonly mode: number;
}

export interface ImageSpec {
  /** With its tag. */
  readonly name: string;
  readonly files: readonly ImageFile[];
  /** Directories that are there though empty, with their modes. */
  readonly directories?: Readonly<Record<string, number>>;
  readonly entrypoint?: readonly string[];
  /** `65532:65532`; absent: root. */
  readonly user?: string;
}

const BLOCK = 512;
const encoder = new TextEncoder();

/** Writes `docker load`able bytes to a file. */
export async function writeImage(spec: ImageSpec, out: string): Promise<void> {
  const layerPath = `${out}.layer`;
  try {
    const diffId = await writeLayer(spec, layerPath);
    const config = encoder.encode(JSON.stringify({
      architecture: Deno.build.arch === "aarch64" ? "arm64" : "amd64",
      os: "linux",
      created: "1970-01-01T00:00:00Z",
      config: {
        Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        ...(spec.entrypoint === undefined ? {} : { Entrypoint: spec.entrypoint }),
        ...(spec.user === undefined ? {} : { User: spec.user }),
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${diffId}`] },
      history: [{ created: "1970-01-01T00:00:00Z" }],
    }));
    const configName = `${createHash("sha256").update(config).digest("hex")}.json`;
    const manifest = [{ Config: configName, RepoTags: [spec.name], Layers: ["layer.tar"] }];
    await using tar = await TarFile.create(out);
    await tar.file(configName, config, 0o644);
    await tar.file("layer.tar", layerPath, 0o644);
    await tar.file("manifest.json", encoder.encode(JSON.stringify(manifest)), 0o644);
  } finally {
    await Deno.remove(layerPath).catch(() => {});
  }
}

async function writeLayer(spec: ImageSpec, path: string): Promise<string> {
  const directories = new Map(Object.entries(spec.directories ?? {}));
  for (const parent of [...directories.keys(), ...spec.files.map((file) => file.path)].flatMap(parentsOf)) {
    if (!directories.has(parent)) directories.set(parent, 0o755);
  }
  const tar = await TarFile.create(path);
  {
    await using open = tar;
    for (const [name, mode] of [...directories].sort(([a], [b]) => a < b ? -1 : 1)) {
      await open.directory(name.slice(1), mode);
    }
    for (const file of spec.files.toSorted((a, b) => a.path < b.path ? -1 : 1)) {
      await open.file(file.path.slice(1), file.from, file.mode);
    }
  }
  return tar.digest;
}

function parentsOf(path: string): string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

class TarFile implements AsyncDisposable {
  readonly #hash = createHash("sha256");
  digest = "";

  private constructor(private readonly out: Deno.FsFile) {}

  static async create(path: string): Promise<TarFile> {
    return new TarFile(await Deno.open(path, { create: true, write: true, truncate: true }));
  }

  async directory(name: string, mode: number): Promise<void> {
    await this.#write(header(`${name}/`, 0, mode, "5"));
  }

  async file(name: string, from: string | Uint8Array, mode: number): Promise<void> {
    if (typeof from !== "string") {
      await this.#write(header(name, from.length, mode, "0"));
      await this.#write(from);
      return await this.#pad(from.length);
    }
    using source = await Deno.open(from);
    const { size } = await source.stat();
    await this.#write(header(name, size, mode, "0"));
    const buffer = new Uint8Array(1 << 20);
    for (let count = await source.read(buffer); count !== null; count = await source.read(buffer)) {
      await this.#write(buffer.subarray(0, count));
    }
    await this.#pad(size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#write(new Uint8Array(2 * BLOCK));
    this.out.close();
    this.digest = this.#hash.digest("hex");
  }

  async #pad(size: number): Promise<void> {
    await this.#write(new Uint8Array((BLOCK - size % BLOCK) % BLOCK));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    for (let sent = 0; sent < bytes.length;) sent += await this.out.write(bytes.subarray(sent));
  }
}

/** ustar: no owner, no time, so that nothing but names, modes and contents counts. */
function header(name: string, size: number, mode: number, type: "0" | "5"): Uint8Array {
  if (name.length > 100) throw new Error(`the name ${name} is too long for an image of tests`);
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  put(0, name);
  put(100, `${mode.toString(8).padStart(7, "0")}\0`);
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, `${size.toString(8).padStart(11, "0")}\0`);
  put(136, "00000000000\0");
  put(148, "        ");
  put(156, type);
  put(257, "ustar\0" + "00");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}
