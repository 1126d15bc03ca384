// Owns: what may be asked about a service's binaries as data, and the answers, as interfaces. Must not: import an adapter or Deno.

import type { Refusal } from "../core/refusal.ts";

export interface Upload {
  /** Rejects where the stream breaks. */
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly sizeBytes?: number;
  readonly sha256?: string;
  /** The text of a minisign signature file. */
  readonly signature?: string;
}

/** `digest` is absent for the executable that was installed (`envoy_path`). */
export type Switched =
  /** Links are switched, and a hot restart is asked for. */
  | { readonly kind: "switched"; readonly digest?: string; readonly version?: string; readonly request: string }
  /** It is what runs already. */
  | { readonly kind: "unchanged"; readonly digest?: string }
  | { readonly kind: "refused"; readonly refusal: Refusal };

export interface SlotInfo {
  readonly digest: string;
  readonly version?: string;
  readonly sizeBytes: number;
  /** When it came, Unix milliseconds. */
  readonly atMs: number;
  readonly current: boolean;
  readonly previous: boolean;
  readonly running: boolean;
  /** Has a signature; whether it is a good one is asked whenever it is to run. */
  readonly signed: boolean;
}

export interface BinaryList {
  /** What runs where there is no `current`. */
  readonly installed: string;
  readonly directory: string;
  /** The switch that has not proved itself yet; `to` is absent for the installed one. */
  readonly trial?: { readonly to?: string; readonly live: boolean };
  /** Newest first. */
  readonly slots: readonly SlotInfo[];
}

export type Listed = { readonly kind: "listed"; readonly list: BinaryList } | {
  readonly kind: "refused";
  readonly refusal: Refusal;
};

export interface SwitchOptions {
  /** Also where it runs already, and although the control plane is away. */
  readonly force: boolean;
  /** By a drained restart, for what can't hand over. */
  readonly drained: boolean;
  readonly gone: AbortSignal;
}

/** Undefined: there is no such service. */
export interface Binaries {
  push(service: string, upload: Upload, options: SwitchOptions): Promise<Switched | undefined>;
  /** `to`: a digest or its beginning, or `installed`; absent: what ran before. */
  rollBack(service: string, to: string | undefined, options: SwitchOptions): Promise<Switched | undefined>;
  list(service: string): Promise<Listed | undefined>;
}
