/** Both forms of the probe, as executables: one table of answers, and the same words to the letter. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { compile, distDir } from "../../tools/compile.ts";
import { type ProbeCase, probeCases } from "../unit/probe/cases.ts";

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const forms = ["epochd-probe", "epochd-probe-portable"] as const;

for (const form of forms) {
  Deno.test(`${form} answers every case of the table`, async (test) => {
    await compile();
    await using copy = await copyForAll();
    await using table = probeCases();
    for (const probeCase of table.cases) {
      const { name, exitCode, line, isBeyondDeno } = probeCase;
      const isOut = cannotRun(probeCase);
      await test.step({
        name: `${name}${isOut ? " (needs root)" : ""}`,
        ignore: isOut,
        async fn() {
          table.refresh();
          const { code, stdout, stderr } = await ask(copy.at(form), probeCase);
          if (isBeyondDeno && form === "epochd-probe-portable") {
            assert.equal(code, 101, "the table can say that Deno has learnt it");
            return;
          }
          assert.equal(code, exitCode, `${stdout}${stderr}`);
          const [said, silent] = exitCode === 2 ? [stderr, stdout] : [stdout, stderr];
          assert.equal(silent, "");
          if (line === undefined) assert.equal(said, "");
          else assert.match(said.replace(/\n$/, ""), line);
          if (exitCode !== 0 && line !== undefined) assert.equal(said.split("\n").length, 2);
        },
      });
    }
  });
}

Deno.test("both forms say the same, but for milliseconds and the name of what they run on", async () => {
  await compile();
  await using copy = await copyForAll();
  await using table = probeCases();
  for (const probeCase of table.cases) {
    if (probeCase.isBeyondDeno || cannotRun(probeCase)) continue;
    table.refresh();
    const native = await ask(copy.at("epochd-probe"), probeCase);
    const portable = await ask(copy.at("epochd-probe-portable"), probeCase);
    assert.deepEqual(masked(native), masked(portable), probeCase.name);
  }
});

Deno.test("the native probe is small and needs no library", async () => {
  await compile();
  const bytes = await Deno.readFile(join(distDir, "epochd-probe"));
  assert.ok(bytes.length < 200_000, `${bytes.length} bytes`);
  const view = new DataView(bytes.buffer);
  const [table, size, count] = [
    Number(view.getBigUint64(32, true)),
    view.getUint16(54, true),
    view.getUint16(56, true),
  ];
  const kinds = Array.from({ length: count }, (_, at) => view.getUint32(table + at * size, true));
  const [interpreter, dynamic] = [3, 2];
  assert.ok(kinds.length > 0 && !kinds.includes(interpreter) && !kinds.includes(dynamic), `segments: ${kinds}`);
});

/** Where another user may run it, too. */
async function copyForAll() {
  const path = await Deno.makeTempDir({ prefix: "epd-" });
  await Deno.chmod(path, 0o755);
  for (const name of [...forms, "libgcc_s.so.1"]) await Deno.copyFile(join(distDir, name), join(path, name));
  return {
    at: (name: string) => join(path, name),
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

function cannotRun({ process }: ProbeCase): boolean {
  return process?.uid !== undefined && Deno.uid() !== 0;
}

async function ask(path: string, { args, process }: ProbeCase): Promise<Answer> {
  const { uid, shell } = process ?? {};
  const command = shell === undefined
    ? new Deno.Command(path, { args: [...args], stdin: "null", ...(uid === undefined ? {} : { uid, gid: uid }) })
    : new Deno.Command("sh", { args: ["-c", shell, "sh", path, ...args], stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

function masked({ code, stdout, stderr }: Answer): Answer {
  const ages = /\b\d+ ms(?= |:|$)/gm;
  return { code, stdout: stdout.replace(/ \((native|deno [\d.]+)\)$/m, "").replaceAll(ages, "N ms"), stderr };
}
