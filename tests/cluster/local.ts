/**
 * A Kubernetes of one node to try the chart on: `local.ts up`, `local.ts down`.
 * Owns: bringing it up with the images of this tree, and telling how to use it. Must not: test anything.
 */
import { join } from "node:path";
import { ENVOY_VERSIONS } from "../support/envoys.ts";
import { tempDir } from "../support/tempdir.ts";
import { clusterDir, nodeDir } from "./support/binaries.ts";
import { Cluster, clusterObstacle } from "./support/cluster.ts";
import { chartImages } from "./support/release.ts";

const print = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(text));

async function up(): Promise<number> {
  const obstacle = await clusterObstacle();
  if (obstacle !== undefined) {
    print(`no cluster: ${obstacle}\n`);
    return 1;
  }
  await using directory = tempDir();
  const cluster = await Cluster.up(await chartImages(ENVOY_VERSIONS, directory.path));
  await cluster.keep();
  print(`A node is up, with the images ${ENVOY_VERSIONS.map((version) => `localhost/envoy:${version}`).join(", ")}
and localhost/epochd:test. In a shell with

    . ${join(nodeDir, "versions.sh")}

\`k\` is kubectl, \`h\` is helm and \`in_net\` runs a command on the node's network, for example

    in_net curl -s http://$NODE_IP:10000/

Down with \`make cluster-down\`.
`);
  return 0;
}

async function down(): Promise<number> {
  const { code } = await new Deno.Command("bash", {
    args: [join(nodeDir, "down.sh")],
    env: { CLUSTER_DIR: clusterDir },
    stdin: "null",
  }).spawn().status;
  return code;
}

const commands: Readonly<Record<string, () => Promise<number>>> = { up, down };
const command = commands[Deno.args[0] ?? ""];
if (command === undefined) print("usage: local.ts up|down\n");
Deno.exit(command === undefined ? 2 : await command());
