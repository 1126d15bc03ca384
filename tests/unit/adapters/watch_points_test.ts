import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { sameDirectories, watchPoints } from "../../../lib/adapters/watch_points.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

async function points(dir: TempDir, path: string) {
  const { directories, paths } = await watchPoints(path);
  const relative = (names: Iterable<string>) =>
    [...names].filter((name) => name.startsWith(dir.path)).map((name) => name.slice(dir.path.length) || "/").sort();
  return { directories: relative(directories.keys()), paths: relative(paths) };
}

Deno.test("watchPoints: a plain file's directory", async () => {
  await using dir = tempDir();
  deepStrictEqual(await points(dir, dir.write("a/b/envoy.yaml", "x")), {
    directories: ["/a/b"],
    paths: ["/a/b/envoy.yaml"],
  });
});

Deno.test("watchPoints: a ConfigMap's links and what they lead to", async () => {
  await using dir = tempDir();
  dir.write("cm/..2024_1/envoy.yaml", "x");
  Deno.symlinkSync("..2024_1", dir.at("cm/..data"));
  Deno.symlinkSync("..data/envoy.yaml", dir.at("cm/envoy.yaml"));
  deepStrictEqual(await points(dir, dir.at("cm/envoy.yaml")), {
    directories: ["/cm", "/cm/..2024_1"],
    paths: ["/cm/..2024_1/envoy.yaml", "/cm/..data", "/cm/envoy.yaml"],
  });
});

Deno.test("watchPoints: a link among the directories, and one that leads elsewhere absolutely", async () => {
  await using dir = tempDir();
  dir.write("releases/1.40/bin/envoy", "x");
  Deno.symlinkSync(dir.at("releases/1.40"), dir.at("current"));
  deepStrictEqual(await points(dir, dir.at("current/bin/envoy")), {
    directories: ["/", "/releases/1.40/bin"],
    paths: ["/current", "/releases/1.40/bin/envoy"],
  });
});

Deno.test("watchPoints: where a part is missing, the last directory that is there", async () => {
  await using dir = tempDir();
  deepStrictEqual(await points(dir, dir.at("a/b/envoy.yaml")), { directories: ["/"], paths: ["/a"] });
  Deno.mkdirSync(dir.at("a"));
  deepStrictEqual(await points(dir, dir.at("a/b/envoy.yaml")), { directories: ["/a"], paths: ["/a/b"] });
  Deno.symlinkSync("nowhere/envoy.yaml", dir.at("a/b"));
  deepStrictEqual(await points(dir, dir.at("a/b")), { directories: ["/a"], paths: ["/a/b", "/a/nowhere"] });
});

Deno.test("watchPoints: links in a circle end", async () => {
  await using dir = tempDir();
  Deno.symlinkSync("two", dir.at("one"));
  Deno.symlinkSync("one", dir.at("two"));
  deepStrictEqual(await points(dir, dir.at("one/envoy.yaml")), { directories: ["/"], paths: ["/one", "/two"] });
});

Deno.test("sameDirectories: a directory that was replaced is another one", async () => {
  await using dir = tempDir();
  const path = dir.write("a/envoy.yaml", "x");
  const before = await watchPoints(path);
  strictEqual(sameDirectories(before, await watchPoints(path)), true);
  Deno.renameSync(dir.at("a"), dir.at("b"));
  dir.write("a/envoy.yaml", "x");
  strictEqual(sameDirectories(before, await watchPoints(path)), false);
});
