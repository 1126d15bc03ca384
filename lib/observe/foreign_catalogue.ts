// Owns: level and text of the facts about Envoys that another supervisor has started, one row a kind. Must not: write or filter.

import type { Fact } from "../core/fact.ts";
import type { Rows } from "./row.ts";
import { showMs } from "./words.ts";

type Kind = "foreign_ended" | "foreign_lost" | "foreign_overdue" | "orphan_awaited" | "orphan_ending";

const endingText = { not_live: "was not LIVE in time", stop: "is stopped with this one" } as const;

export const foreignCatalogue: Pick<Rows<Fact>, Kind> = {
  foreign_ended: {
    level: "info",
    fields: { epoch: "number", drainedMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} of the other supervisor has ended after a drain of ${showMs(fact.drainedMs)}`,
  },
  foreign_lost: {
    level: "error",
    fields: { epoch: "number", drainedMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} of the other supervisor ended ${
        showMs(fact.drainedMs)
      } into its drain, before it was told to`,
  },
  foreign_overdue: {
    level: "error",
    fields: { epoch: "number", boundMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} of the other supervisor still lives after ${
        showMs(fact.boundMs)
      }, not waiting for it any longer`,
  },
  orphan_awaited: {
    level: "warn",
    fields: { epoch: "number", pid: "number", boundMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} (pid ${fact.pid}) of a supervisor that is gone initialises, waiting for it for up to ${
        showMs(fact.boundMs)
      }`,
  },
  orphan_ending: {
    level: "warn",
    fields: { epoch: "number", pid: "number", signal: "text", why: "text" },
    message: (fact) =>
      `sent ${fact.signal} to epoch ${fact.epoch} (pid ${fact.pid}), whose supervisor is gone: it ${
        endingText[fact.why]
      }`,
  },
};
