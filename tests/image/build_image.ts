// Owns: the image that the Dockerfile builds in, made of this machine's own toolchain: a shell, a C library, what setup.py brings.
// Must not: need a network.
import { existsSync, globSync } from "node:fs";
import { glibcFiles } from "../../tools/glibc.ts";
import { toolsDir } from "../../tools/toolchain.ts";
import { type ImageFile, writeImage } from "../support/image.ts";
import { tempDir } from "../support/tempdir.ts";
import type { Docker } from "./docker.ts";

/** Of the toolchain: what compiles, and the packages that it has fetched; not the Envoys. */
const PARTS = ["bin", "compile", "zig", "cache/deno"];

export async function makeBuildImage(docker: Docker, name: string): Promise<void> {
  await using directory = tempDir();
  const libgcc = globSync("/lib/*-linux-gnu/libgcc_s.so.1")[0]!;
  const system: ImageFile[] = [
    ...(await glibcFiles(`${toolsDir}/bin/deno`)).map((file) => ({ ...file, mode: 0o755 })),
    { path: libgcc, from: await Deno.realPath(libgcc), mode: 0o644 },
    { path: "/bin/sh", from: "/bin/busybox", mode: 0o755 },
  ];
  await writeImage(
    { name: `${name}-system:1`, files: system, directories: { "/tmp": 0o1777 } },
    directory.at("system.tar"),
  );
  await docker.must("load", "--input", directory.at("system.tar"));
  const copies = PARTS.filter((part) => existsSync(`${toolsDir}/${part}`))
    .map((part) => `COPY ${part} /opt/epochd-tools/${part}\n`);
  const dockerfile = directory.write("Dockerfile", `FROM ${name}-system:1\n${copies.join("")}`);
  // BuildKit takes of this context only what is copied.
  await docker.must("build", "--tag", name, "--file", dockerfile, toolsDir);
}
