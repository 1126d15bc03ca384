// Owns: the images of tests: Envoy as its distroless image has it, and epochd as the Dockerfile makes it. Must not: load them.
import { compile, distDir } from "../../tools/compile.ts";
import { glibcFiles } from "../../tools/glibc.ts";
import { imageHome } from "../../tools/image_root.ts";
import { type InstalledName, manifestName, modeOf, programFiles } from "../../lib/install/manifest.ts";
import { envoyPath, type EnvoyVersion } from "./envoys.ts";
import { type ImageFile, type ImageSpec, writeImage } from "./image.ts";

/** The user of distroless images. */
export const IMAGE_USER = "65532:65532";

/** glibc, Envoy, nothing else: no shell, no libgcc. */
export async function envoyImage(version: EnvoyVersion, name: string): Promise<ImageSpec> {
  const envoy = envoyPath(version);
  return {
    name,
    files: [...await systemFiles(envoy), { path: "/usr/local/bin/envoy", from: envoy, mode: 0o755 }],
    directories: { "/tmp": 0o1777, "/etc/envoy": 0o755 },
    entrypoint: ["/usr/local/bin/envoy"],
    user: IMAGE_USER,
  };
}

/** From dist/, which is built where it is not current. */
export async function epochdImage(name: string): Promise<ImageSpec> {
  await compile();
  const names: readonly InstalledName[] = [...programFiles, manifestName];
  const files = names.map((file): ImageFile => {
    return { path: `${imageHome}/${file}`, from: `${distDir}/${file}`, mode: modeOf(file) };
  });
  return {
    name,
    files: [...await systemFiles(`${distDir}/epochd`), ...files],
    directories: { "/tmp": 0o1777 },
    entrypoint: [`${imageHome}/epochd`],
    user: IMAGE_USER,
  };
}

/** Writes each image into the directory and returns the archives' paths. */
export async function writeImages(specs: readonly ImageSpec[], directory: string): Promise<string[]> {
  return await Promise.all(specs.map(async (spec) => {
    const path = `${directory}/${spec.name.replaceAll(/[^a-z0-9.]+/g, "-")}.tar`;
    await writeImage(spec, path);
    return path;
  }));
}

async function systemFiles(executable: string): Promise<ImageFile[]> {
  return (await glibcFiles(executable)).map((file) => ({ ...file, mode: 0o755 }));
}
