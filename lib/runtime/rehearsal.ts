// Owns: checking new content while its debounce runs, so that its turn finds the verdict known. Must not: decide anything;
// the preflight of the handoff asks again, and only what was remembered by digest is spared.

import type { Content } from "../core/event.ts";
import type { Preflight } from "./ports.ts";

export class Rehearsal {
  private current: AbortController | undefined;
  private seenBefore = false;

  /** `provenKey`: of what serves; undefined while nothing does, which is no time for extra work. */
  constructor(private readonly preflight: Preflight, private readonly provenKey: () => string | undefined) {}

  /** The newest content counts: what is under way for an older one is ended. */
  seen(content: Content): void {
    this.end();
    const provenKey = this.provenKey();
    const isFirst = !this.seenBefore;
    this.seenBefore = true;
    if (isFirst || content.kind === "unusable" || provenKey === undefined) return;
    const abort = new AbortController();
    this.current = abort;
    const request = { depth: "full", provenKeys: [provenKey], joining: false } as const;
    // Whatever comes of it, the handoff's own preflight will meet and tell.
    this.preflight.run(request, abort.signal).catch(() => {});
  }

  end(): void {
    this.current?.abort();
    this.current = undefined;
  }
}
