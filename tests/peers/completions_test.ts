// Owns: completions in the shells they are for. Must not: compare the scripts' text.
import assert from "node:assert/strict";
import { runEpochd } from "../support/epochd.ts";
import { debianProgram } from "../support/debian_program.ts";
import { tempDir } from "../support/tempdir.ts";

interface Case {
  /** The last word is completed. */
  readonly words: readonly string[];
  readonly some: readonly string[];
  readonly none?: readonly string[];
}

const cases: readonly Case[] = [
  { words: ["epochd", ""], some: ["run", "status", "events", "history", "doctor", "config", "completions"] },
  { words: ["epochd", "sta"], some: ["status"], none: ["restart"] },
  { words: ["epochd", "config", ""], some: ["get", "set", "diff", "schema", "validate"], none: ["run"] },
  { words: ["epochd", "run", "--drain"], some: ["--drain-time"], none: ["--debounce"] },
  { words: ["epochd", "run", "--log-level", ""], some: ["debug", "info", "warn", "error"] },
  { words: ["epochd", "config", "get", "--"], some: ["--json", "--api-socket", "--help"], none: ["--drain-time"] },
  { words: ["epochd", "restart", "--wait", ""], some: ["live", "drained"] },
  { words: ["epochd", "history", "--kind", "h"], some: ["handoff"] },
  { words: ["epochd", "completions", ""], some: ["bash", "zsh", "fish"] },
  { words: ["epochd", "run", "--config", "epoch"], some: ["epochd.yaml"] },
];

type Complete = (script: string, words: readonly string[], cwd: string) => Promise<readonly string[]>;

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd, stdin: "null" }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

/** As readline calls it. */
const bash: Complete = async (script, words, cwd) => {
  const program = `source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "$(complete -p epochd | sed 's/.*-F \\([^ ]*\\).*/\\1/')" 2>/dev/null
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  return lines(await run("/bin/bash", ["-c", program, "bash", script, ...words], cwd));
};

const fish: Complete = async (script, words, cwd) => {
  const line = words.map((word) => word === "" ? "" : word).join(" ");
  const found = await run("/usr/bin/fish", ["--no-config", "-c", `source ${script}; complete -C '${line}'`], cwd);
  return lines(found).map((text) => text.split("\t")[0]!);
};

/** An interactive zsh on a terminal of its own, where Tab lists what there is. */
const zsh: Complete = async (script, words, cwd) => {
  const program = `zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PROMPT= RPROMPT=; stty columns 200 rows 200; autoload -Uz compinit; compinit -u -D; source ${script}'
    zpty -w shell 'zstyle ":completion:*" list-colors ""; zstyle ":completion:*" verbose no; LISTMAX=10000; setopt no_beep no_auto_menu list_ambiguous; bindkey "^I" complete-word; bindkey "^X" list-choices; echo rea""dy'
    zpty -r -m shell seen '*ready*'
    zpty -w -n shell $'${words.join(" ").replaceAll("'", "")}\\C-X'
    sleep 1.2
    zpty -w -n shell $'\\C-U'
    zpty -w shell 'echo do""ne'
    zpty -r -m shell seen '*done*'
    print -r -- "$seen"`;
  const found = await run("/usr/bin/zsh", ["-f", "-c", program], cwd);
  // deno-lint-ignore no-control-regex
  return found.replaceAll(/\x1b\[[0-9;?]*[a-zA-Z]/g, " ").split(/[\s\r]+/);
};

function lines(text: string): readonly string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

const shells = { bash, zsh, fish };
for (const name of ["bash", "zsh", "fish"] as const) {
  const { obstacle } = await debianProgram(name);
  const title = `${name} completes commands, options, values and files`;
  Deno.test(obstacle === undefined ? title : `${title} (${obstacle})`, { ignore: obstacle !== undefined }, async () => {
    await using dir = tempDir();
    const { code, stdout } = await runEpochd(["completions", name]);
    assert.equal(code, 0);
    const script = dir.write(`epochd.${name}`, stdout);
    dir.write("epochd.yaml", "");
    for (const { words, some, none = [] } of cases) {
      const found = await shells[name](script, words, dir.path);
      for (const word of some) assert.ok(found.includes(word), `${words.join(" ")}: no ${word} in ${found.join(" ")}`);
      for (const word of none) assert.ok(!found.includes(word), `${words.join(" ")}: ${word} is there`);
    }
  });
}

Deno.test("completions for a shell that is not known end with 2 and what is", async () => {
  const { code, stderr } = await runEpochd(["completions", "csh"]);
  assert.equal(code, 2);
  assert.match(stderr, /bash, zsh or fish/);
});
