import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { sha256 } from "../../../lib/adapters/content.ts";
import { BinaryDigests } from "../../../lib/adapters/digests.ts";
import { ContentWatch, type ContentWatchOptions } from "../../../lib/adapters/file_watch.ts";
import type { Content } from "../../../lib/core/event.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

/** Polls are off unless a test is about them: what is seen was seen by events. */
const NEVER_MS = 3_600_000;

class Watched {
  readonly reports: Content[] = [];
  readonly modes: string[] = [];
  private readonly watch: { close(): void };

  constructor(readonly path: string, options: ContentWatchOptions = {}) {
    this.watch = new ContentWatch({ pollMs: NEVER_MS, settleMs: 20, ...options })
      .watch(path, (content) => this.reports.push(content), (mode, why) => this.modes.push(`${mode}: ${why}`));
  }

  /** The last report, in short. */
  get last(): string | undefined {
    const content = this.reports.at(-1);
    return content?.kind === "usable" ? content.digest : content?.problem.replace(`read ${this.path}: `, "");
  }

  /** The end of everything that one change can cause: a further change is seen. */
  async saw(text: string): Promise<void> {
    await until(`"${text.slice(0, 40)}" was reported`, () => this.last === sha256(text));
  }

  [Symbol.dispose](): void {
    this.watch.close();
  }
}

function replace(dir: TempDir, name: string, text: string): void {
  const draft = dir.write(`${name}.draft`, text);
  Deno.renameSync(draft, dir.at(name));
}

Deno.test("ContentWatch: tells the content once at the start, and how it watches", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.write("envoy.yaml", "one"));
  await watched.saw("one");
  await until("the mode was told", () => watched.modes.length > 0);
  deepStrictEqual(watched.modes, [`events: ${dir.path}`]);
  replace(dir, "envoy.yaml", "two");
  await watched.saw("two");
  deepStrictEqual(watched.reports.length, 2);
});

Deno.test("ContentWatch: a write in place, a rename over it, and a new file after its removal", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.write("envoy.yaml", "one"));
  await watched.saw("one");
  dir.write("envoy.yaml", "two");
  await watched.saw("two");
  replace(dir, "envoy.yaml", "three");
  await watched.saw("three");
  Deno.removeSync(watched.path);
  await until("its removal was reported", () => watched.last === "no such file or directory");
  dir.write("envoy.yaml", "four");
  await watched.saw("four");
});

Deno.test("ContentWatch: nothing for a touch, the same bytes and files beside it", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.write("envoy.yaml", "one"));
  await watched.saw("one");
  Deno.utimeSync(watched.path, 1000, 1000);
  replace(dir, "envoy.yaml", "one");
  for (let i = 0; i < 20; i++) dir.write(`other${i}`, "x");
  for (let i = 0; i < 20; i++) Deno.removeSync(dir.at(`other${i}`));
  Deno.chmodSync(watched.path, 0o600);
  replace(dir, "envoy.yaml", "two");
  await watched.saw("two");
  deepStrictEqual(watched.reports.map((content) => content.kind), ["usable", "usable"]);
});

Deno.test("ContentWatch: other bytes behind the same stat are seen", async () => {
  await using dir = tempDir();
  const write = (text: string) => {
    Deno.writeTextFileSync(dir.at("envoy.yaml"), text);
    // As two writes in one tick of the kernel's clock leave it.
    Deno.utimeSync(dir.at("envoy.yaml"), 1000, 1000);
  };
  write("0");
  using watched = new Watched(dir.at("envoy.yaml"));
  await watched.saw("0");
  for (let round = 1; round <= 9; round++) {
    write(`${round}`);
    await watched.saw(`${round}`);
  }
});

Deno.test("ContentWatch: the swap of a ConfigMap, again and again", async () => {
  await using dir = tempDir();
  const publish = (generation: number, text: string) => {
    dir.write(`cm/..gen${generation}/envoy.yaml`, text);
    Deno.symlinkSync(`..gen${generation}`, dir.at("cm/..data_tmp"));
    Deno.renameSync(dir.at("cm/..data_tmp"), dir.at("cm/..data"));
    if (generation > 0) Deno.removeSync(dir.at(`cm/..gen${generation - 1}`), { recursive: true });
  };
  publish(0, "generation 0");
  Deno.symlinkSync("..data/envoy.yaml", dir.at("cm/envoy.yaml"));
  using watched = new Watched(dir.at("cm/envoy.yaml"));
  await watched.saw("generation 0");
  for (let generation = 1; generation <= 5; generation++) {
    publish(generation, `generation ${generation}`);
    await watched.saw(`generation ${generation}`);
  }
  deepStrictEqual(watched.reports.length, 6);
  strictEqual(watched.modes.length, 1);
});

Deno.test("ContentWatch: a link's target is watched where it lies", async () => {
  await using dir = tempDir();
  dir.write("real/envoy.yaml", "one");
  Deno.mkdirSync(dir.at("etc"));
  Deno.symlinkSync(dir.at("real/envoy.yaml"), dir.at("etc/envoy.yaml"));
  using watched = new Watched(dir.at("etc/envoy.yaml"));
  await watched.saw("one");
  replace(dir, "real/envoy.yaml", "two");
  await watched.saw("two");
});

Deno.test("ContentWatch: missing, empty and a directory are unusable, each in its words, and it recovers", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.at("envoy.yaml"));
  await until("missing was reported", () => watched.last === "no such file or directory");
  dir.write("envoy.yaml", "");
  await until("empty was reported", () => watched.last === "is empty");
  dir.write("envoy.yaml", "one");
  await watched.saw("one");
  Deno.removeSync(watched.path);
  Deno.mkdirSync(watched.path);
  await until("the directory was reported", () => watched.last === "is a directory, expected a file");
  Deno.removeSync(watched.path);
  dir.write("envoy.yaml", "one");
  await watched.saw("one");
});

Deno.test("ContentWatch: an editor that truncates before it writes is no news", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.write("envoy.yaml", "one"), { settleMs: 400 });
  await watched.saw("one");
  Deno.writeTextFileSync(watched.path, "");
  await new Promise((resolve) => setTimeout(resolve, 50));
  Deno.writeTextFileSync(watched.path, "two");
  await watched.saw("two");
  deepStrictEqual(watched.reports.map(({ kind }) => kind), ["usable", "usable"]);
});

Deno.test("ContentWatch: the directory is removed, comes back, is replaced", async () => {
  await using dir = tempDir();
  using watched = new Watched(dir.write("a/b/envoy.yaml", "one"));
  await watched.saw("one");
  Deno.removeSync(dir.at("a"), { recursive: true });
  await until("its removal was reported", () => watched.reports.at(-1)?.kind === "unusable");
  dir.write("a/b/envoy.yaml", "two");
  await watched.saw("two");
  dir.write("new/envoy.yaml", "three");
  Deno.removeSync(dir.at("a/b"), { recursive: true });
  Deno.renameSync(dir.at("new"), dir.at("a/b"));
  await watched.saw("three");
  dir.write("a/b/envoy.yaml", "four");
  await watched.saw("four");
});

Deno.test("ContentWatch: without inotify it polls, says why, and gets the watch back", async () => {
  await using dir = tempDir();
  let failing = true;
  const watchFs = (directories: string[]) => {
    if (failing) throw new Error("Too many open files (os error 24)");
    return Deno.watchFs(directories, { recursive: false });
  };
  using watched = new Watched(dir.write("envoy.yaml", "one"), { pollMs: 20, watchFs });
  await watched.saw("one");
  deepStrictEqual(watched.modes, [`polling: watch ${dir.path}: too many open files`]);
  dir.write("envoy.yaml", "two");
  await watched.saw("two");
  failing = false;
  await until("the watch is back", () => watched.modes.length === 2);
  match(watched.modes[1] ?? "", /^events: /);
  dir.write("envoy.yaml", "three");
  await watched.saw("three");
});

Deno.test("ContentWatch: a watch that ends or sees nothing is made up for by the poll", async () => {
  await using dir = tempDir();
  const deaf: { end?: () => void } = {};
  const watchFs = () => {
    const ended = new Promise<IteratorResult<Deno.FsEvent>>((resolve) =>
      deaf.end = () => resolve({ done: true, value: undefined })
    );
    const watcher = { close: () => deaf.end?.(), next: () => ended, [Symbol.asyncIterator]: () => watcher };
    return watcher as unknown as Deno.FsWatcher;
  };
  using watched = new Watched(dir.write("envoy.yaml", "one"), { pollMs: 20, watchFs });
  await watched.saw("one");
  dir.write("envoy.yaml", "two!");
  await watched.saw("two!");
  strictEqual(watched.modes.length, 1);
  deaf.end?.();
  await until("the loss and the return were told", () => watched.modes.length === 3);
  deepStrictEqual(watched.modes[1], "polling: the watch ended");
});

Deno.test("ContentWatch: after its close nothing is reported", async () => {
  await using dir = tempDir();
  const path = dir.write("envoy.yaml", "one");
  using other = new Watched(path);
  const closed = new Watched(path);
  await closed.saw("one");
  await other.saw("one");
  closed[Symbol.dispose]();
  closed[Symbol.dispose]();
  const immediately = new Watched(path);
  immediately[Symbol.dispose]();
  dir.write("envoy.yaml", "two");
  await other.saw("two");
  strictEqual(closed.reports.length, 1);
  strictEqual(immediately.reports.length, 0);
});

Deno.test("ContentWatch: a binary is reported when it rests, and only for other bytes", async () => {
  await using dir = tempDir();
  const binaries = new BinaryDigests();
  try {
    const path = dir.write("envoy", "#!old");
    Deno.chmodSync(path, 0o755);
    using watched = new Watched(path, { binaries, settleMs: 150 });
    await until("the first was reported", () => watched.reports.length === 1);
    // A copy in pieces, each well within the rest that is waited for.
    const file = Deno.openSync(path, { write: true, truncate: true });
    for (let i = 0; i < 10; i++) {
      file.writeSync(new TextEncoder().encode("#!new piece\n"));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    file.close();
    await until("the second was reported", () => watched.reports.length === 2);
    const look = await binaries.look(path);
    deepStrictEqual(watched.reports[1], look);
    Deno.utimeSync(path, 1000, 1000);
    Deno.removeSync(path);
    await until("the removal was reported", () => watched.reports.length === 3);
    strictEqual(watched.reports[2]?.kind, "unusable");
  } finally {
    binaries.close();
  }
});
