// Owns: the measured ground of doctor's check of UDP listeners: whose version decides whether they go dark in a handoff.
import assert from "node:assert/strict";
import dgram from "node:dgram";
import { freeBaseId, removeSegment } from "../../support/base_ids.ts";
import { type EnvoyVersion, spawnEnvoy } from "../../support/envoys.ts";
import { freePorts } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";
import { within } from "../../support/until.ts";

const types = "type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3";

function bootstrap(listenPort: number, adminPort: number, upstreamPort: number): string {
  const at = (port: number, protocol?: string) => ({
    socket_address: { address: "127.0.0.1", port_value: port, ...(protocol && { protocol }) },
  });
  const route = { "@type": `${types}.Route`, cluster: "echo" };
  const proxy = {
    "@type": `${types}.UdpProxyConfig`,
    stat_prefix: "udp",
    matcher: { on_no_match: { action: { name: "route", typed_config: route } } },
  };
  return JSON.stringify({
    admin: { address: at(adminPort) },
    static_resources: {
      listeners: [{
        name: "udp",
        address: at(listenPort, "UDP"),
        listener_filters: [{ name: "envoy.filters.udp_listener.udp_proxy", typed_config: proxy }],
      }],
      clusters: [{
        name: "echo",
        type: "STATIC",
        load_assignment: {
          cluster_name: "echo",
          endpoints: [{ lb_endpoints: [{ endpoint: { address: at(upstreamPort) } }] }],
        },
      }],
    },
  });
}

/** Whether a session of its own gets an answer within half a second. */
async function answers(port: number): Promise<boolean> {
  const socket = dgram.createSocket("udp4");
  try {
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), 500);
      socket.once("message", () => {
        clearTimeout(timer);
        resolve(true);
      });
      socket.send("hello", port, "127.0.0.1");
    });
  } finally {
    socket.close();
  }
}

async function duringHandoff(
  parent: EnvoyVersion,
  child: EnvoyVersion,
): Promise<{ readonly during: boolean; readonly after: boolean }> {
  await using dir = tempDir();
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  const baseId = freeBaseId();
  const echo = dgram.createSocket("udp4");
  echo.on("message", (data, { port, address }) => echo.send(data, port, address));
  await new Promise<void>((resolve) => echo.bind(upstreamPort, "127.0.0.1", () => resolve()));
  const options = {
    bootstrapPath: dir.write("envoy.json", bootstrap(listenPort, adminPort, upstreamPort)),
    baseId,
    drainTimeS: 1,
    parentShutdownTimeS: 4,
  };
  try {
    await using first = spawnEnvoy({ ...options, version: parent });
    await first.untilLive({ port: adminPort });
    assert.ok(await answers(listenPort), "before");
    await using second = spawnEnvoy({ ...options, version: child, epoch: 1 });
    await second.untilLive({ port: adminPort });
    await new Promise((resolve) => setTimeout(resolve, 500));
    const during = await answers(listenPort);
    await within("the end of the parent", first.exit);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { during, after: await answers(listenPort) };
  } finally {
    echo.close();
    removeSegment(baseId);
  }
}

for (
  const [parent, child, during] of [
    ["1.39.3", "1.40.0", false],
    ["1.38.3", "1.38.3", false],
    ["1.40.0", "1.40.0", true],
    ["1.40.0", "1.39.3", true],
  ] as const
) {
  Deno.test(`UDP without QUIC ${during ? "is served" : "is dark until the parent has ended"} from Envoy ${parent} to ${child}`, async () => {
    assert.deepEqual(await duringHandoff(parent, child), { during, after: true });
  });
}
