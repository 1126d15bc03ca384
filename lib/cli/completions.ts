import type { Command } from "commander";
export function completions(_program: Command, _shell: string): string { return ""; }
