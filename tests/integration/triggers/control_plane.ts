// Owns: a scene whose listener, routes and cluster come from a real control plane, and the ways to hold a child initialising.
// Must not: know what is tried there.

import { freePort } from "../../support/ports.ts";
import { fetchOnce } from "../../support/http_client.ts";
import { type Snapshot, startXdsServer, type XdsServer } from "../../support/xds_server.ts";
import type { Traffic } from "../../support/traffic.ts";
import { until } from "../../support/until.ts";
import type { Scene } from "../faults/scene.ts";
import type { SceneOptions, Stage } from "../faults/stage.ts";

export interface Managed {
  readonly scene: Scene;
  readonly xds: XdsServer;
  readonly snapshot: Snapshot;
  /** On the listener and the cluster that the control plane gave. */
  readonly dynamic: Traffic;
}

/** epochd and an Envoy with all resources of its control plane; traffic on the static and on the dynamic listener. */
export async function serveManaged(
  stage: Stage,
  options: SceneOptions & { readonly initialFetchTimeoutMs?: number } = {},
): Promise<Managed> {
  const { initialFetchTimeoutMs, ...rest } = options;
  const [port, listenPort] = [freePort(), freePort()];
  const snapshot = { listenPorts: [listenPort], upstreamPort: port, generation: "xds-1", extraClusters: 2 };
  const xds = stage.use(await startXdsServer(port, snapshot));
  const timeout = initialFetchTimeoutMs === undefined ? {} : { initialFetchTimeoutMs };
  const scene = await stage.serve({
    ...rest,
    bootstrap: { xds: { kind: "ads", port, ...timeout }, ...rest.bootstrap },
  });
  const real = { ...snapshot, upstreamPort: scene.base.upstreamPort ?? 0 };
  xds.serve(real);
  await until("the dynamic route leads somewhere", async () => {
    return (await fetchOnce({ port: listenPort }, { path: "/" })).status === 200;
  });
  const dynamic = stage.load(listenPort, { path: "/" });
  return { scene, xds, snapshot: real, dynamic };
}

/** A child that initialises until `xds.pace` says otherwise; resolves when it is under way. */
export async function childHeldBack({ scene, xds }: Managed): Promise<void> {
  const since = scene.mark();
  xds.pace("silent");
  scene.epochd.signal("SIGHUP");
  await scene.event("epoch_progress", undefined, since);
}
