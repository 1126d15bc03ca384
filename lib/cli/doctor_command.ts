import type { Command } from "commander";
import type { Terminal } from "./terminal.ts";
export function addDoctorOptions(_command: Command, _terminal: Terminal, _end: (code: number) => void): void {}
