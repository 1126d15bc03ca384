// Owns: level and text of what is told about stand-ins, part of the catalogue. Must not: write or filter.

import type { Fact } from "../core/fact.ts";
import type { Rows } from "./row.ts";
import { showMs } from "./words.ts";

const standInText = {
  terminated: "its successor told it to terminate",
  bound_over: "its time is over",
  not_needed: "nobody needs it any more",
} as const;

export const standInRows: Pick<Rows<Fact>, "stand_in_began" | "stand_in_ended" | "stand_in_failed"> = {
  stand_in_began: {
    level: "warn",
    fields: { epoch: "number", pid: "number", boundMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} died before its time: a stand-in answers epoch ${
        fact.epoch + 1
      } in its place, which would abort in about 10 s without one`,
  },
  stand_in_ended: {
    level: "info",
    fields: { epoch: "number", why: "text", stoodMs: "ms" },
    message: (fact) =>
      `the stand-in for epoch ${fact.epoch} has ended after ${showMs(fact.stoodMs)}: ${standInText[fact.why]}`,
  },
  stand_in_failed: {
    level: "error",
    fields: { epoch: "number", problem: "text", waitMs: "ms" },
    message: (fact) =>
      fact.waitMs === undefined
        ? `no stand-in for epoch ${fact.epoch}: ${fact.problem}; epoch ${fact.epoch + 1} will abort in about 10 s`
        : `no stand-in for epoch ${fact.epoch}, next try in ${showMs(fact.waitMs)}: ${fact.problem}`,
  },
};
