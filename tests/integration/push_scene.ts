// Owns: an epochd that takes executables as data, and what it says of them. Must not: know what is tested.
import assert from "node:assert/strict";
import type { Epochd, EpochdOptions } from "../support/epochd.ts";
import type { Scene } from "./scene.ts";

export interface Slot {
  readonly digest: string;
  readonly version: string;
  readonly running: boolean;
  readonly current: boolean;
  readonly previous: boolean;
  readonly signed: boolean;
}

/** With its slots in `slots` of the scene's directory. */
export async function startWithSlots(here: Scene, options: Partial<EpochdOptions> = {}): Promise<Epochd> {
  const { extraArguments = [] } = options;
  return await here.start({
    ...options,
    extraArguments: ["--slots-dir", here.directory.at("slots"), ...extraArguments],
  });
}

export async function slotsOf(epochd: Epochd): Promise<readonly Slot[]> {
  const { code, stdout, stderr } = await epochd.command("binaries", "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).slots;
}

/** What is left in the directory of slots, but for its lock. */
export function slotNames(here: Scene): readonly string[] {
  const names = [...Deno.readDirSync(here.directory.at("slots/envoy"))].map(({ name }) => name);
  return names.filter((name) => name !== ".lock").sort();
}

export function linkOf(here: Scene, name: "current" | "previous"): string | undefined {
  try {
    return Deno.readLinkSync(here.directory.at("slots/envoy", name));
  } catch {
    return undefined;
  }
}
