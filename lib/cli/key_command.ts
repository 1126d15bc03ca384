// Owns: `epochd key create|list|revoke`: the keys file of the API. Must not: ask a supervisor (it reads the file itself), or
// keep a key.

import type { Command } from "commander";
import { createKey, formatEntry, isKeyId, type KeyEntry, parseKeys } from "../api/keys.ts";
import { sha256 } from "../adapters/content.ts";
import { roles } from "../config/client_role.ts";
import { nearest } from "../config/nearest.ts";
import { replaceConfigFile } from "../config/persist.ts";
import { oneLine } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import { alignedRows } from "./table.ts";
import type { Terminal } from "./terminal.ts";

interface KeyFlags {
  readonly role?: string;
  readonly file?: string;
  readonly note?: string;
  readonly json?: true;
}

type End = (code: number) => void;
type Read = { readonly text: string; readonly entries: readonly KeyEntry[] };

export function addKeyCommands(parent: Command, terminal: Terminal, end: End): void {
  parent.addHelpText("after", examples);
  parent.command("create").description("make a key; it is shown this once, the file keeps its hash")
    .argument("<ID>", "names it in the audit log: lower case letters, digits and -")
    .requiredOption("--role <ROLE>", roles.join(" | "))
    .option("--file <FILE>", "the file that --api-keys-file names; without it, the entry is printed")
    .option("--note <TEXT>", "whose it is").option("--json", "for programs").addHelpText("after", examples)
    .action(async (id: string, flags: KeyFlags) => end(await create(id, flags, terminal)));
  parent.command("list").description("show the keys of a file, without anything secret")
    .requiredOption("--file <FILE>").option("--json", "for programs").addHelpText("after", examples)
    .action(async (flags: KeyFlags) => end(await list(flags, terminal)));
  parent.command("revoke").description("remove a key; a running supervisor notices")
    .argument("<ID>").requiredOption("--file <FILE>").option("--json", "for programs").addHelpText("after", examples)
    .action(async (id: string, flags: KeyFlags) => end(await revoke(id, flags, terminal)));
}

async function create(id: string, flags: KeyFlags, terminal: Terminal): Promise<number> {
  const role = roles.find((known) => known === flags.role);
  if (role === undefined) {
    const meant = nearest(flags.role ?? "", roles);
    const hint = meant === undefined ? "" : `, did you mean ${meant}?`;
    return misuse(`--role ${flags.role}: expected ${roles.join(", ")}${hint}`, terminal);
  }
  if (!isKeyId(id)) return misuse(`${id}: expected an id of at most 32 lower case letters, digits and -`, terminal);
  const note = oneLine(flags.note ?? "").trim();
  const { key, entry } = createKey(id, role, note);
  const line = formatEntry(entry);
  if (flags.file !== undefined) {
    const wrong = await append(flags.file, entry, line);
    if (wrong !== undefined) return fail(wrong, terminal);
  }
  if (flags.json === true) {
    terminal.out(
      `${JSON.stringify({ id, role, key, ...(flags.file === undefined ? { entry: line } : { file: flags.file }) })}\n`,
    );
    return exitCode.ok;
  }
  // The key alone on stdout, for a pipe into a secret store; the rest is for people.
  terminal.out(`${key}\n`);
  terminal.err(
    flags.file === undefined
      ? `this key is not shown again; the line for the file of --api-keys-file:\n${line}\n`
      : `this key is not shown again; ${flags.file} has its hash\n`,
  );
  return exitCode.ok;
}

async function append(file: string, { id }: KeyEntry, line: string): Promise<string | undefined> {
  const read = await readKeys(file);
  if ("problem" in read) {
    if (!read.isMissing) return read.problem;
    try {
      await Deno.writeTextFile(file, `# ID ROLE sha256:HASH NOTE\n${line}\n`, { createNew: true, mode: 0o600 });
      return undefined;
    } catch (error) {
      return `write ${file}: ${error instanceof Error ? error.message : error}`;
    }
  }
  if (read.entries.some((entry) => entry.id === id)) {
    return `${file} has a key ${id} already: revoke it, or choose another id`;
  }
  const gap = read.text === "" || read.text.endsWith("\n") ? "" : "\n";
  return await rewrite(file, read, `${read.text}${gap}${line}\n`);
}

async function list(flags: KeyFlags, terminal: Terminal): Promise<number> {
  const read = await readKeys(flags.file!);
  if ("problem" in read) return fail(read.problem, terminal);
  const keys = read.entries.map(({ id, role, note }) => ({ id, role, note }));
  if (flags.json === true) terminal.out(`${JSON.stringify(keys)}\n`);
  else {for (
      const row of alignedRows([["ID", "ROLE", "NOTE"], ...keys.map(({ id, role, note }) => [id, role, note])])
    ) terminal.out(`${row}\n`);}
  return exitCode.ok;
}

async function revoke(id: string, flags: KeyFlags, terminal: Terminal): Promise<number> {
  const file = flags.file!;
  const read = await readKeys(file);
  if ("problem" in read) return fail(read.problem, terminal);
  const known = read.entries.map((entry) => entry.id);
  if (!known.includes(id)) return fail(`${file} has no key ${id}, expected one of: ${known.join(", ")}`, terminal);
  const kept = read.text.split("\n").filter((line) => !new RegExp(`^\\s*${id}\\s`).test(line)).join("\n");
  const wrong = await rewrite(file, read, kept);
  if (wrong !== undefined) return fail(wrong, terminal);
  terminal.out(flags.json === true ? `${JSON.stringify({ id, revoked: true })}\n` : `revoked: ${id}\n`);
  return exitCode.ok;
}

async function rewrite(file: string, { text }: Read, next: string): Promise<string | undefined> {
  const done = await replaceConfigFile(file, next, sha256(text));
  if (done.kind === "written") return undefined;
  return done.name === "config_file_changed"
    ? `${file} is being edited by somebody else: try again`
    : done.detail.split(";")[0];
}

async function readKeys(file: string): Promise<Read | { readonly problem: string; readonly isMissing: boolean }> {
  try {
    const text = await Deno.readTextFile(file);
    const parsed = parseKeys(text);
    if (parsed.kind === "refused") return { problem: `read ${file}: ${parsed.problem}`, isMissing: false };
    return { text, entries: parsed.entries };
  } catch (error) {
    const isMissing = error instanceof Deno.errors.NotFound;
    const why = isMissing ? "does not exist" : error instanceof Error ? error.message : String(error);
    return { problem: `read ${file}: ${why}`, isMissing };
  }
}

function misuse(text: string, terminal: Terminal): number {
  terminal.err(`error: ${oneLine(text)}\n`);
  return exitCode.usage;
}

function fail(text: string, terminal: Terminal): number {
  terminal.err(`error: ${oneLine(text)}\n`);
  return exitCode.refused;
}

const examples = `
Examples:
  epochd key create ci --role operate --file /etc/epochd/keys --note "deploys of the edge team"
  epochd key create prometheus --role read          prints the key, and the line for a Secret
  epochd key list --file /etc/epochd/keys
  epochd key revoke ci --file /etc/epochd/keys

Roles: read looks, operate starts new epochs and reloads, admin changes the configuration. A supervisor takes a changed file at once.
Exit codes: 0 done, 1 refused, 2 usage.`;
