/**
 * Writes what is derived from the code: `generate.ts`; `generate.ts --check` writes nothing and fails where something is old.
 * Owns the list of generated files; what is in them is each generator's.
 */
import { join } from "node:path";
import { apiDocument } from "./generate/api.ts";
import { configSchemaDocument } from "./generate/config_schema.ts";
import { configurationDocument } from "./generate/configuration.ts";
import { dashboardDocument } from "./generate/dashboard.ts";
import { figuresTable } from "./generate/figures.ts";
import { flagsTable } from "./generate/flags_table.ts";
import { metricsDocument } from "./generate/metrics.ts";
import { valuesSchema } from "./generate/values_schema.ts";
import { projectDir } from "./toolchain.ts";

interface Generated {
  /** From the project's root. */
  readonly path: string;
  /** Takes the file as it is, where only a part of it is generated. */
  readonly make: (present: string) => string;
}

const generated: readonly Generated[] = [
  {
    path: "README.md",
    make: (present) => replaceBetween(replaceBetween(present, "flags", flagsTable()), "figures", figuresTable()),
  },
  { path: "docs/configuration.md", make: configurationDocument },
  { path: "docs/metrics.md", make: metricsDocument },
  { path: "docs/api.md", make: apiDocument },
  { path: "docs/epochd.schema.json", make: configSchemaDocument },
  { path: "charts/epochd/values.schema.json", make: valuesSchema },
  { path: "charts/epochd/files/dashboard.json", make: dashboardDocument },
];

function replaceBetween(text: string, name: string, content: string): string {
  const [start, end] = [text.indexOf(`<!-- ${name}:`), text.indexOf(`<!-- /${name} -->`)];
  const from = text.indexOf("\n", start) + 1;
  if (start < 0 || end < from) throw new Error(`no markers <!-- ${name}: ... --> and <!-- /${name} -->`);
  return `${text.slice(0, from)}\n${content}\n${text.slice(end)}`;
}

/** As `deno fmt` leaves it, so that formatting and generating never disagree. */
async function formatted(text: string, path: string): Promise<string> {
  const args = ["fmt", "--quiet", `--ext=${path.slice(path.lastIndexOf(".") + 1)}`, "-"];
  const child = new Deno.Command(Deno.execPath(), { args, cwd: projectDir, stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error(`deno fmt refused what was made for ${path}`);
  return new TextDecoder().decode(stdout);
}

async function read(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

const isCheck = Deno.args[0] === "--check";
const encoder = new TextEncoder();
let old = 0;
for (const { path, make } of generated) {
  const present = await read(join(projectDir, path));
  const fresh = await formatted(make(present), path);
  if (fresh === present) continue;
  old++;
  if (!isCheck) await Deno.writeTextFile(join(projectDir, path), fresh);
  Deno.stdout.writeSync(
    encoder.encode(`${path} ${isCheck ? "is old: run `deno run -A tools/generate.ts`" : "written"}\n`),
  );
}
Deno.exit(isCheck && old > 0 ? 1 : 0);
