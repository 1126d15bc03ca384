/** What the Kustomize components make of workloads that are there already, as recorded in golden/ (UPDATE=1 records). */
import assert from "node:assert/strict";
import { join } from "node:path";
import { kubectlPath } from "../cluster/support/binaries.ts";
import { projectDir } from "../../tools/toolchain.ts";
import { runEpochd } from "../support/epochd.ts";
import { tempDir } from "../support/tempdir.ts";
import { parseAllDocuments } from "yaml";
import { assertGolden } from "./golden.ts";
import { helmObstacle } from "./helm.ts";

const ignore = helmObstacle !== undefined;
const suffix = ignore ? ` (${helmObstacle})` : "";
const here = import.meta.dirname!;

async function kustomize(name: string): Promise<string> {
  const args = ["kustomize", "--load-restrictor", "LoadRestrictionsNone", join(here, "kustomize", name)];
  const { code, stdout, stderr } = await new Deno.Command(kubectlPath, { args, stdin: "null" }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

for (const name of ["daemonset", "deployment", "cross_pod"]) {
  Deno.test({
    name: `the component renders ${name} as recorded${suffix}`,
    ignore,
    async fn() {
      await assertGolden(join(here, `golden/kustomize_${name}.golden`), await kustomize(name));
    },
  });
}

for (const name of ["epochd", "cross-pod"]) {
  Deno.test(`epochd takes the settings of the component ${name}`, async () => {
    await using directory = tempDir();
    const file = directory.at("epochd.yaml");
    await Deno.copyFile(join(projectDir, `deploy/kustomize/${name}/epochd.yaml`), file);
    const { code, stderr } = await runEpochd(["run", "--config", file]);
    // Envoy and its bootstrap are the image's: that they are missing here is all there is to say.
    const problems = stderr.trim().split("\n").map((line) => line.replace(/^error: \S+: services\.envoy\./, ""));
    assert.deepEqual([code, problems], [2, [
      "envoy_config /etc/envoy/envoy.yaml: does not exist, expected Envoy's bootstrap file",
      "envoy_path /usr/local/bin/envoy: does not exist, expected Envoy's executable",
    ]]);
  });
}

Deno.test({
  name: `the components say what the chart says${suffix}`,
  ignore,
  async fn() {
    const chart = parseAllDocuments(await Deno.readTextFile(join(here, "golden/cross_pod_first.golden")));
    const own = parseAllDocuments(await kustomize("cross_pod"));
    // deno-lint-ignore no-explicit-any
    const podOf = (documents: any[]) => documents.map((one) => one.toJS()).find((one) => one.kind === "DaemonSet").spec;
    const [theirs, ours] = [podOf(chart).template.spec, podOf(own).template.spec];
    for (const key of ["hostNetwork", "dnsPolicy", "shareProcessNamespace", "terminationGracePeriodSeconds"]) {
      assert.equal(ours[key], theirs[key], key);
    }
    // deno-lint-ignore no-explicit-any
    const named = (pod: any, wanted: string) =>
      pod.initContainers.find(({ name }: { name: string }) => name === wanted);
    const contextOf = (pod: unknown, name: string) => named(pod, name).securityContext;
    for (const name of ["install", "host-dirs"]) {
      assert.deepEqual(contextOf(ours, `epochd-${name}`), contextOf(theirs, name));
    }
    const probe = { ...theirs.containers[0].readinessProbe, exec: undefined };
    assert.deepEqual({ ...ours.containers[0].readinessProbe, exec: undefined }, probe);
  },
});
