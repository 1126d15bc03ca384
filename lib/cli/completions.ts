// Owns: completions as bash, zsh and fish want them. Must not: list a command or an option by itself.

import type { Command } from "commander";
import { allCommands, commandTree, type TreeCommand, type TreeOption, type Value } from "./command_tree.ts";

export function completions(program: Command, shell: "bash" | "zsh" | "fish"): string {
  const tree = commandTree(program);
  return shell === "bash" ? bash(tree) : shell === "zsh" ? zsh(tree) : fish(tree);
}

function bash(tree: TreeCommand): string {
  const all = allCommands(tree);
  const known = all.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  const words = all.map(({ path, commands, options, argument }) => {
    const names = options.flatMap(({ names }) => names);
    const first = [
      ...commands.map(({ name }) => name),
      ...(argument?.kind === "choice" ? argument.of : []),
    ];
    const files = argument?.kind === "file" ? " files=f" : argument?.kind === "directory" ? " files=d" : "";
    return `    "${path}") options="${names.join(" ")}" words="${first.join(" ")}"${files} ;;`;
  });
  const values = all.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }) => {
      if (value === undefined) return [];
      const patterns = names.map((name) => `"${path} ${name}"`).join("|");
      return [`    ${patterns}) ${bashValue(value)}; return ;;`];
    })
  );
  return `# bash completion of epochd, made by \`epochd completions bash\`
_epochd_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "-$1" -- "$cur")
}
_epochd_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}
_epochd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path="" word next files="" options="" words=""
  local -i at
  COMPREPLY=()
  # \`--flag=value\` comes in three pieces.
  if [[ $cur == "=" ]]; then cur=""; elif [[ $previous == "=" ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    next="\${path:+$path }$word"
    case "$next" in
      ${known.join("|")}) path=$next ;;
    esac
  done
  case "$path $previous" in
${values.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  if [[ $cur == -* ]]; then _epochd_words "$options"
  elif [[ -n $words ]]; then _epochd_words "$words"
  elif [[ -n $files ]]; then _epochd_files "$files"
  fi
}
complete -F _epochd epochd
`;
}

function bashValue(value: Value): string {
  switch (value.kind) {
    case "choice":
      return `_epochd_words "${value.of.join(" ")}"`;
    case "file":
      return "_epochd_files f";
    case "directory":
      return "_epochd_files d";
    case "any":
      return ":";
  }
}

function zsh(tree: TreeCommand): string {
  return `#compdef epochd
# zsh completion of epochd, made by \`epochd completions zsh\`
${allCommands(tree).toReversed().map(zshFunction).join("\n")}
if [[ "$funcstack[1]" == _epochd ]]; then _epochd "$@"; else compdef _epochd epochd; fi
`;
}

function zshFunction({ path, options, commands, argument }: TreeCommand): string {
  const specs = options.map(zshOption);
  if (commands.length === 0) {
    if (argument !== undefined) specs.push(`'1:argument:${zshAction(argument)}'`);
    return `${zshName(path)}() {\n  _arguments ${specs.join(" \\\n    ")}\n}`;
  }
  const described = commands.map(({ name, description }) => quoted(`${name}:${description.replaceAll(":", "\\:")}`));
  const cases = commands.map(({ name, path: inner }) => `        ${name}) ${zshName(inner)} ;;`);
  return `${zshName(path)}() {
  local context state line
  local -a commands
  typeset -A opt_args
  _arguments -C ${specs.join(" \\\n    ")} '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      commands=(${described.join("\n        ")})
      _describe command commands ;;
    argument)
      case $line[1] in
${cases.join("\n")}
      esac ;;
  esac
}`;
}

function zshName(path: string): string {
  return ["_epochd", ...path.split(" ").filter((part) => part !== "")].join("_");
}

function zshOption({ names, description, value }: TreeOption): string {
  const text = description.replaceAll(/([\[\]:\\])/g, "\\$1");
  const action = value === undefined ? "" : `:value:${zshAction(value)}`;
  // `=`: the value may stand behind = or in the next word.
  return names.map((name) =>
    quoted(`*${name}${value !== undefined && name.startsWith("--") ? "=" : ""}[${text}]${action}`)
  ).join(" ");
}

function zshAction(value: Value): string {
  switch (value.kind) {
    case "choice":
      return `(${value.of.join(" ")})`;
    case "file":
      return "_files";
    case "directory":
      return "_files -/";
    case "any":
      return " ";
  }
}

function fish(tree: TreeCommand): string {
  const lines = allCommands(tree).flatMap((command) => {
    const { path, commands, options, argument } = command;
    const where = quoted(fishCondition(command));
    return [
      ...commands.map(({ name, description }) =>
        `complete -c epochd -f -n ${where} -a ${name} -d ${quoted(description)}`
      ),
      ...(argument?.kind === "choice" ? [`complete -c epochd -f -n ${where} -a ${quoted(argument.of.join(" "))}`] : []),
      ...(argument?.kind === "file" ? [`complete -c epochd -F -n ${where}`] : []),
      ...options.map((option) => fishOption(option, path === "" ? where : quoted(`__epochd_at ${path}`))),
    ];
  });
  return `# fish completion of epochd, made by \`epochd completions fish\`
function __epochd_at --description 'whether these words were given, in this order'
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        test (count $argv) -eq 0; and break
        test "$word" = "$argv[1]"; and set -e argv[1]
    end
    test (count $argv) -eq 0
end
complete -c epochd -f
${lines.join("\n")}
`;
}

/** At this command, and none below it was given yet. */
function fishCondition({ path, commands }: TreeCommand): string {
  const below = commands.length === 0
    ? ""
    : `not __fish_seen_subcommand_from ${commands.map(({ name }) => name).join(" ")}`;
  if (path === "") return below;
  return `__epochd_at ${path}${below === "" ? "" : `; and ${below}`}`;
}

function fishOption({ names, description, value }: TreeOption, where: string): string {
  const flags = names.map((name) => name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`);
  return `complete -c epochd -n ${where} ${flags.join(" ")}${fishValue(value)} -d ${quoted(description)}`;
}

function fishValue(value: Value | undefined): string {
  switch (value?.kind) {
    case undefined:
      return "";
    case "choice":
      return ` -x -a ${quoted(value.of.join(" "))}`;
    case "file":
      return " -r -F";
    case "directory":
      return " -x -a '(__fish_complete_directories)'";
    case "any":
      return " -x";
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
