// Owns: small states to start a test from. Must not: run transitions.

import type { Child, Epoch, Plan } from "../../../lib/core/epoch.ts";
import type { Settings } from "../../../lib/core/settings.ts";
import {
  type Handoff,
  initialState,
  type Phase,
  type Predecessor,
  type Serving,
  type State,
} from "../../../lib/core/state.ts";
import { DEFAULTS, plan } from "../../transcripts/script.ts";

export const settings: Settings = DEFAULTS;
export { plan };

export function child(attempt: number, number: number, of: Plan = plan("b0")): Child {
  return { attempt, number, plan: of, spawnedAtMs: 1_000, pid: 1_000 + attempt };
}

export function epoch(attempt: number, number: number, of: Plan = plan("b0")): Epoch {
  const version = "x/1.40.0/Clean/RELEASE/BoringSSL";
  return { ...child(attempt, number, of), liveAtMs: 1_500, version, hotRestartVersion: "11.104" };
}

export const handoff: Handoff = {
  id: 1,
  source: "signal",
  requests: [],
  when: "always",
  force: false,
  tries: 0,
  onTrial: false,
  beganAtMs: 1_000,
};

export function predecessor(attempt: number, number: number): Predecessor {
  return { epoch: epoch(attempt, number), handoff, drainsSinceMs: 1_500, revivals: 0 };
}

export function serving(patch: Partial<Serving> = {}): State {
  const phase: Serving = {
    kind: "serving",
    epoch: epoch(2, 0),
    predecessor: undefined,
    health: { kind: "answering" },
    compare: undefined,
    foreign: undefined,
    ...patch,
  };
  return at(phase);
}

export function at(phase: Phase, patch: Partial<State> = {}): State {
  return { ...initialState, attempts: 2, phase, ...patch };
}
