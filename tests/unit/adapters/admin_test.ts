import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { takeCensus } from "../../../lib/adapters/census.ts";
import { EnvoyAdmin, parseServerInfo, parseStats, sumConnections } from "../../../lib/adapters/admin.ts";

const info = {
  version: "abc/1.40.0/Clean/RELEASE/BoringSSL",
  state: "LIVE",
  hot_restart_version: "11.104",
  command_line_options: { restart_epoch: 3 },
  node: { id: "a", extensions: [{ name: "x" }] },
};

const identity = { epoch: 3, state: "LIVE", version: info.version, hotRestartVersion: "11.104" };

/** One answer for all questions, from a real listener. */
async function answering<T>(
  body: string,
  status: number,
  act: (admin: EnvoyAdmin, port: number) => Promise<T>,
): Promise<T> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response(body, { status }));
  try {
    return await act(new EnvoyAdmin(), server.addr.port);
  } finally {
    await server.shutdown();
  }
}

const at = (port: number) => ({ kind: "tcp", host: "127.0.0.1", port }) as const;

Deno.test("parseServerInfo: identity, laid out by Envoy or on one line", () => {
  deepStrictEqual(parseServerInfo(JSON.stringify(info, null, 1)), identity);
  deepStrictEqual(parseServerInfo(JSON.stringify(info)), identity);
  const { node, ...rest } = info;
  deepStrictEqual(parseServerInfo(JSON.stringify({ node, ...rest }, null, 1)), identity);
});

Deno.test("parseServerInfo: something else is no identity", () => {
  for (
    const body of [
      "",
      "LIVE\n",
      "[]",
      "{}",
      '{"state":"LIVE"}',
      JSON.stringify({ ...info, state: "HALF" }),
      JSON.stringify({ ...info, version: 1 }),
      JSON.stringify({ ...info, command_line_options: { restart_epoch: "3" } }),
    ]
  ) strictEqual(parseServerInfo(body), undefined, body);
});

Deno.test("EnvoyAdmin.identity: another server's answer is garbage and says so", async () => {
  const cases: readonly (readonly [string, number])[] = [["<html>", 200], [JSON.stringify(info), 500], ["{}", 200]];
  for (const [body, status] of cases) {
    const answer = await answering(body, status, (admin, port) => admin.identity(at(port)));
    strictEqual(answer.kind === "silent" ? answer.why : answer.kind, "garbage", body);
  }
});

Deno.test("parseStats: numbers by name, histograms left out", () => {
  const body = JSON.stringify({
    stats: [{ name: "a", value: 1 }, { histograms: { supported_quantiles: [0] } }, { name: "t", value: "x" }],
  });
  deepStrictEqual([...parseStats(body) ?? []], [["a", 1]]);
  strictEqual(parseStats("a: 1"), undefined);
  strictEqual(parseStats("{}"), undefined);
});

Deno.test("sumConnections: neither admin's connections nor a worker's rows count", () => {
  const stats = new Map([
    ["listener.0.0.0.0_80.downstream_cx_active", 2],
    ["listener.0.0.0.0_80.downstream_cx_total", 20],
    ["listener.0.0.0.0_80.worker_0.downstream_cx_active", 1],
    ["listener.0.0.0.0_80.worker_11.downstream_cx_total", 10],
    ["listener.[__]_443.downstream_cx_active", 3],
    ["listener.[__]_443.downstream_cx_total", 30],
    ["listener.admin.downstream_cx_active", 7],
    ["listener.admin.main_thread.downstream_cx_active", 7],
    ["listener.admin.downstream_cx_total", 70],
  ]);
  deepStrictEqual(sumConnections(stats), { active: 5, total: 50 });
});

Deno.test("EnvoyAdmin.inventory: absent when a stat is, control plane left out without xDS", async () => {
  const rows = (stats: Record<string, number>) =>
    JSON.stringify({ stats: Object.entries(stats).map(([name, value]) => ({ name, value })) });
  const both = { "listener_manager.total_listeners_active": 2, "cluster_manager.active_clusters": 5 };
  const ask = (stats: Record<string, number>) =>
    answering(rows(stats), 200, (admin, port) => admin.inventory(at(port)));
  deepStrictEqual(await ask(both), { listeners: 2, clusters: 5 });
  deepStrictEqual(await ask({ ...both, "control_plane.connected_state": 0 }), {
    listeners: 2,
    clusters: 5,
    controlPlaneConnected: false,
  });
  deepStrictEqual(await ask({ ...both, "control_plane.connected_state": 1 }), {
    listeners: 2,
    clusters: 5,
    controlPlaneConnected: true,
  });
  strictEqual(await ask({ "cluster_manager.active_clusters": 5 }), undefined);
});

Deno.test("EnvoyAdmin.inventory: a control plane that its cluster is still connecting to is not connected", async () => {
  const inventory = async (stats: Record<string, number>) => {
    const rows = {
      "listener_manager.total_listeners_active": 1,
      "cluster_manager.active_clusters": 1,
      "control_plane.connected_state": 1,
      ...stats,
    };
    const body = JSON.stringify({ stats: Object.entries(rows).map(([name, value]) => ({ name, value })) });
    return await answering(body, 200, async (admin, port) => {
      return (await admin.inventory(at(port), ["xds:one", "x.two"]))?.controlPlaneConnected;
    });
  };
  const [pending, active] = ["cluster.xds_one.upstream_rq_pending_active", "cluster.xds_one.upstream_rq_active"];
  strictEqual(await inventory({ [pending]: 1, [active]: 0 }), false);
  strictEqual(await inventory({ [pending]: 0, [active]: 1 }), true);
  // Of two services one is there; a cluster whose stats have another name says nothing.
  strictEqual(await inventory({ [pending]: 1, [active]: 0, "cluster.x.two.upstream_rq_active": 1 }), true);
  strictEqual(await inventory({}), true);
});

Deno.test("EnvoyAdmin.drain: an answer that is not 200 is not ok", async () => {
  deepStrictEqual(await answering("OK\n", 200, (admin, port) => admin.drain(at(port), "listeners")), {
    ok: true,
    detail: "POST /drain_listeners?graceful: 200 OK",
  });
  deepStrictEqual(await answering("no\n", 405, (admin, port) => admin.drain(at(port), "fail_health")), {
    ok: false,
    detail: "POST /healthcheck/fail: 405 no",
  });
});

Deno.test("what is a gauge is asked of gauges alone: the filter is tried on every name, on Envoy's main thread", async () => {
  const asked: URL[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    asked.push(new URL(url));
    return new Response('{"stats":[]}');
  });
  try {
    await new EnvoyAdmin().inventory(at(server.addr.port), ["xds"]);
    await takeCensus(at(server.addr.port));
    // Its totals are counters.
    await new EnvoyAdmin().connections(at(server.addr.port));
  } finally {
    await server.shutdown();
  }
  deepStrictEqual(asked.map(({ searchParams }) => searchParams.get("type")), ["Gauges", "Gauges", null]);
});
