// Owns: what a switch of binaries needs of the directory that holds them, as an interface. Must not: import an adapter or Deno.

import type { Refusal } from "../core/refusal.ts";
import type { SlotInfo, Upload } from "./binaries.ts";

export type Executable = { readonly kind: "found"; readonly path: string } | {
  readonly kind: "refused";
  readonly refusal: Refusal;
};

export type ReceivedBinary =
  | {
    readonly kind: "received";
    readonly digest: string;
    /** Not in a slot yet. */
    readonly path: string;
    readonly discard: () => Promise<undefined>;
  }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Digests; absent: the executable that was installed. */
export interface SlotLinkTargets {
  readonly current?: string;
  readonly previous?: string;
}

export interface SlotTrial {
  readonly digest?: string;
  readonly before: SlotLinkTargets;
  /** Where `before` was on trial itself: what was before that. */
  readonly proven?: SlotLinkTargets;
}

/** Problems are texts or refusals; nothing rejects. */
export interface Slots {
  readonly directory: string;
  pathOf(digest: string | undefined): string;
  digestOf(path: string): string | undefined;
  verify(digest: string): Promise<Refusal | undefined>;
  receive(upload: Upload): Promise<ReceivedBinary>;
  /** Gives it its place; the refusal, or undefined. */
  adopt(received: Extract<ReceivedBinary, { kind: "received" }>, version: string): Promise<Refusal | undefined>;
  /** Nobody else changes links from here on; else why not. */
  take(): Promise<string | undefined>;
  release(): void;
  links(): Promise<SlotLinkTargets>;
  switchTo(digest: string | undefined): Promise<SlotTrial | Refusal>;
  /** False: `current` was moved by somebody else meanwhile, and stays. A text: the problem. */
  goBack(trial: SlotTrial): Promise<boolean | string>;
  /** The trial is over, the links stay. */
  accept(): Promise<string | undefined>;
  /** `current` names what runs. */
  follow(path: string): Promise<string | undefined>;
  list(runningPath: string | undefined): Promise<readonly SlotInfo[]>;
  prune(running: readonly string[]): Promise<void>;
}
