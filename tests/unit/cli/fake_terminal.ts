// Owns: a terminal that remembers. Must not: write anywhere.

import type { Terminal } from "../../../lib/cli/terminal.ts";

export class FakeTerminal implements Terminal {
  stdout = "";
  stderr = "";

  constructor(readonly interactive = false, readonly colour = false) {}

  out(text: string): void {
    this.stdout += text;
  }

  err(text: string): void {
    this.stderr += text;
  }
}
