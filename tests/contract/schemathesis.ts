// Owns: schemathesis, pinned, in .tools/: brought by pip when a test first needs it. Must not: be installed into the system.

import { tempDir } from "../support/tempdir.ts";

const pin = "schemathesis==4.32.5";
const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);
const home = `${Deno.env.get("TOOLS_DIR") ?? `${root}.tools`}/schemathesis`;

/** Its command, or why there is none. */
export async function bringSchemathesis(): Promise<{ readonly path: string } | { readonly why: string }> {
  const path = `${home}/bin/st`;
  if (await version(path) === pin) return { path };
  await using dir = tempDir();
  const log = dir.at("pip.log");
  try {
    await Deno.remove(home, { recursive: true }).catch(() => {});
    await run(Deno.env.get("PYTHON") ?? "python3", ["-m", "venv", home]);
    await run(`${home}/bin/python`, [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--log",
      log,
      pin,
    ]);
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
  return await version(path) === pin ? { path } : { why: `${path} is not ${pin}` };
}

async function version(path: string): Promise<string | undefined> {
  try {
    const { success, stdout } = await new Deno.Command(path, { args: ["--version"], stdout: "piped", stderr: "null" })
      .output();
    const [, number] = /(\d+\.\d+\.\d+)/.exec(new TextDecoder().decode(stdout)) ?? [];
    return success && number !== undefined ? `schemathesis==${number}` : undefined;
  } catch {
    return undefined;
  }
}

async function run(path: string, args: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(180_000);
  const command = new Deno.Command(path, { args: [...args], stdin: "null", stdout: "null", stderr: "piped", signal });
  const { success, stderr } = await command.output();
  if (success) return;
  const last = new TextDecoder().decode(stderr).trim().split("\n").at(-1) ?? "";
  throw new Error(`${path} ${args.slice(0, 3).join(" ")}: ${last}`);
}
