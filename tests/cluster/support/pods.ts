// Owns: what Kubernetes says about the pods of one release: now, and every change of it. Must not: change anything.
import type { Cluster } from "./cluster.ts";
import { linesOf } from "./lines.ts";

export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly ip: string;
  readonly phase: string;
  readonly ready: boolean;
  readonly terminating: boolean;
  readonly restarts: number;
  readonly image: string;
  /** Of the container's end, once it has ended for good. */
  readonly exitCode?: number;
}

export async function podsOf(cluster: Cluster, namespace: string, release: string): Promise<PodView[]> {
  const { items } = await cluster.json("-n", namespace, "get", "pods", "-l", labelOf(release));
  return items.map(viewOf);
}

export async function onlyPod(cluster: Cluster, namespace: string, release: string): Promise<PodView> {
  const pods = await podsOf(cluster, namespace, release);
  if (pods.length !== 1) throw new Error(`expected one pod, found ${JSON.stringify(pods)}`);
  return pods[0]!;
}

export interface PodChange {
  readonly atMs: number;
  readonly pods: readonly PodView[];
}

/** Every state that the API server told of, in its order: no moment between two looks is missed. */
export class PodHistory implements AsyncDisposable {
  readonly changes: PodChange[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #read: Promise<void>;

  constructor(cluster: Cluster, namespace: string, release: string) {
    const query = `watch=1&labelSelector=${encodeURIComponent(labelOf(release))}`;
    this.#child = cluster.watch(`/api/v1/namespaces/${namespace}/pods?${query}`);
    this.#read = this.#collect();
  }

  /** Changes after the first Ready pod in which no pod is. */
  get unready(): readonly PodChange[] {
    const isReady = ({ pods }: PodChange) => pods.some(({ ready }) => ready);
    const first = this.changes.findIndex(isReady);
    return first < 0 ? this.changes : this.changes.slice(first).filter((change) => !isReady(change));
  }

  /** Exit codes of pods that were asked to go. */
  get exitCodes(): readonly number[] {
    const codes = new Map<string, number>();
    for (const { uid, exitCode, terminating } of this.changes.flatMap(({ pods }) => pods)) {
      if (terminating && exitCode !== undefined) codes.set(uid, exitCode);
    }
    return [...codes.values()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.status;
    await this.#read;
  }

  async #collect(): Promise<void> {
    const pods = new Map<string, PodView>();
    for await (const line of linesOf(this.#child.stdout)) {
      const { type, object } = JSON.parse(line);
      const view = viewOf(object);
      if (type === "DELETED") pods.delete(view.uid);
      else pods.set(view.uid, view);
      this.changes.push({ atMs: Date.now(), pods: [...pods.values()] });
    }
  }
}

function labelOf(release: string): string {
  return `app.kubernetes.io/instance=${release}`;
}

// deno-lint-ignore no-explicit-any
function viewOf(pod: any): PodView {
  const container = pod.status.containerStatuses?.[0];
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    ip: pod.status.podIP ?? "",
    phase: pod.status.phase,
    // deno-lint-ignore no-explicit-any
    ready: pod.status.conditions?.some((one: any) => one.type === "Ready" && one.status === "True") ?? false,
    terminating: pod.metadata.deletionTimestamp !== undefined,
    restarts: container?.restartCount ?? 0,
    image: pod.spec.containers[0].image,
    ...(container?.state.terminated === undefined ? {} : { exitCode: container.state.terminated.exitCode }),
  };
}
