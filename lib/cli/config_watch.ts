// Owns: noticing that epochd.yaml changed, once it rests. Must not: read its meaning.

import { ContentWatch } from "../adapters/file_watch.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Configuration } from "../runtime/configuration.ts";

const restMs = 500;

/** The result ends it. */
export function watchConfig(
  path: string,
  configuration: Configuration,
  tell: (fact: ShellFact) => void,
  bug: (where: string, error: unknown) => void,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const { close } = new ContentWatch().watch(path, (content) => {
    clearTimeout(timer);
    if (content.kind === "unusable") {
      const detail = `${content.problem}; what runs goes on`;
      return tell({ kind: "config_refused", source: "file", who: "watched file", refusal: "config_invalid", detail });
    }
    timer = setTimeout(() => {
      configuration.fileChanged(content.digest).catch((error) => bug("changed configuration", error));
    }, restMs);
  }, (mode, why) => tell({ kind: "config_watch_changed", mode, why }));
  return () => {
    clearTimeout(timer);
    close();
  };
}
