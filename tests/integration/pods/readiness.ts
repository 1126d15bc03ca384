// Owns: what kubelet would see of the pods: every marker every 100 ms, and a request at the same moment. Must not: judge.

import { fetchOnce } from "../../support/http_client.ts";
import { pause } from "../../support/until.ts";
import type { Pod } from "./pod.ts";

const EVERY_MS = 100;
/** As epochd-probe has it. */
const TOO_OLD_MS = 10_000;

export interface Sample {
  readonly atMs: number;
  /** Names of the pods that are Ready. */
  readonly ready: readonly string[];
  readonly served: boolean;
  readonly problem: string | undefined;
}

export interface Readiness {
  readonly samples: readonly Sample[];
  /** Samples without a Ready pod, and Ready ones without service. */
  gaps(): { readonly nobody: readonly Sample[]; readonly hollow: readonly Sample[] };
  stop(): Promise<void>;
}

export function watchReadiness(pods: readonly Pod[], port: number): Readiness {
  const samples: Sample[] = [];
  let isOver = false;
  const watching = (async () => {
    for (let dueMs = performance.now(); !isOver; dueMs += EVERY_MS) {
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await pause(waitMs);
      const ready = pods.filter((pod) => pod.ended === undefined && isMarkerFresh(pod.marker)).map(nameOf);
      const atMs = Date.now();
      const problem = await fetchOnce({ port }, { path: "/direct", timeoutMs: 2_000 }).then(
        ({ status }) => status === 200 ? undefined : `status ${status}`,
        (error) => String(error),
      );
      samples.push({ atMs, ready, served: problem === undefined, problem });
    }
  })();
  return {
    samples,
    gaps: () => ({
      nobody: samples.filter(({ ready }) => ready.length === 0),
      hollow: samples.filter(({ ready, served }) => ready.length > 0 && !served),
    }),
    async stop() {
      isOver = true;
      await watching;
    },
  };
}

function nameOf(pod: Pod): string {
  return pod.options.name;
}

export function isMarkerFresh(path: string): boolean {
  try {
    const [unixMs] = Deno.readTextFileSync(path).split(" ");
    return Date.now() - Number(unixMs) <= TOO_OLD_MS;
  } catch {
    return false;
  }
}
