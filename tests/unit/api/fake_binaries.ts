// Owns: executables as data that a test decides about. Must not: keep files.

import type { Binaries, Listed, Switched, SwitchOptions, Upload } from "../../../lib/runtime/binaries.ts";

export class FakeBinaries implements Binaries {
  /** What came, whole; or why it broke. */
  readonly pushed: { readonly upload: Upload; readonly bytes: Uint8Array; readonly broken?: string }[] = [];
  readonly rolledBack: (string | undefined)[] = [];
  answer: Switched = { kind: "switched", digest: "ab".repeat(32), version: "1.40.0", request: "r1" };
  /** Answers without reading, as for a digest that runs. */
  readsNothing = false;

  async push(service: string, upload: Upload, _options: SwitchOptions): Promise<Switched | undefined> {
    if (service !== "envoy") return undefined;
    if (this.readsNothing) return this.answer;
    const pieces: Uint8Array[] = [];
    let broken: string | undefined;
    try {
      for await (const piece of upload.pieces) pieces.push(piece);
    } catch (error) {
      broken = error instanceof Error ? error.message : String(error);
    }
    const bytes = new Uint8Array(pieces.flatMap((piece) => [...piece]));
    this.pushed.push({ upload, bytes, ...(broken === undefined ? {} : { broken }) });
    return this.answer;
  }

  rollBack(service: string, to: string | undefined): Promise<Switched | undefined> {
    if (service !== "envoy") return Promise.resolve(undefined);
    this.rolledBack.push(to);
    return Promise.resolve(this.answer);
  }

  list(service: string): Promise<Listed | undefined> {
    if (service !== "envoy") return Promise.resolve(undefined);
    return Promise.resolve({ kind: "listed", list: { installed: "/envoy", directory: "/slots", slots: [] } });
  }
}
