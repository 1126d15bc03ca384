/** What the chart renders for each file of values/, as recorded in golden/ (UPDATE=1 records), and what must hold of all of it. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { runFlags } from "../../lib/config/flags.ts";
import { projectDir } from "../../tools/toolchain.ts";
import { envoyPath } from "../support/envoys.ts";
import { tempDir } from "../support/tempdir.ts";
import { assertGolden } from "./golden.ts";
import { chartDir, helm, helmObstacle, template } from "./helm.ts";

const ignore = helmObstacle !== undefined;
const suffix = ignore ? ` (${helmObstacle})` : "";
const here = import.meta.dirname!;

Deno.test({
  name: `helm lint finds nothing but the missing icon${suffix}`,
  ignore,
  async fn() {
    for (const values of globSync(join(here, "values/*.yaml"))) {
      const { code, stdout } = await helm("lint", "--strict", chartDir, "--values", values);
      const findings = stdout.split("\n").filter((line) => /^\[/.test(line));
      assert.deepEqual({ code, findings }, { code: 0, findings: ["[INFO] Chart.yaml: icon is recommended"] }, values);
    }
  },
});

for (const values of globSync(join(here, "values/*.yaml")).sort()) {
  const name = basename(values, ".yaml");
  Deno.test({
    name: `the chart renders ${name} as recorded${suffix}`,
    ignore,
    async fn() {
      const { code, stdout, stderr } = await template("--values", values);
      assert.equal(code, 0, stderr);
      await assertGolden(join(here, `golden/${name}.golden`), stdout);
      checkAll(stdout);
    },
  });
}

Deno.test({
  name: `NOTES say what to watch${suffix}`,
  ignore,
  async fn() {
    await using directory = tempDir();
    const chart = await chartWithNotes(directory.at("epochd"));
    for (const name of ["defaults", "off", "cross_pod_first", "surge", "pod_monitor"]) {
      const values = join(here, `values/${name}.yaml`);
      const show = ["--show-only", "templates/notes.yaml"];
      const { code, stdout, stderr } = await helm("template", "edge", chart, "-n", "gateways", "-f", values, ...show);
      assert.equal(code, 0, stderr);
      await assertGolden(join(here, `golden/notes_${name}.golden`), parse(stdout)[0].notes);
    }
  },
});

Deno.test("chart, image tags and epochd are of one version", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.json")));
  const chart = parse(await Deno.readTextFile(join(chartDir, "Chart.yaml")))[0];
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  const workload = await Deno.readTextFile(join(projectDir, "deploy/kustomize/epochd/workload.yaml"));
  assert.ok(workload.includes(`image: epochd:${version}`));
});

Deno.test({
  name: `Envoy takes the bootstrap that the chart comes with${suffix}`,
  ignore,
  async fn() {
    await using directory = tempDir();
    const documents = parse((await template()).stdout);
    const map = documents.find(({ kind }) => kind === "ConfigMap");
    const path = directory.write("envoy.yaml", map.data["envoy.yaml"]);
    const args = ["--mode", "validate", "-c", path];
    const { code, stderr } = await new Deno.Command(envoyPath(), { args, stdin: "null" }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
  },
});

/** `helm template` leaves the notes out, and `helm install --dry-run` wants a cluster: a copy has them as a manifest. */
async function chartWithNotes(path: string): Promise<string> {
  const { success } = await new Deno.Command("cp", { args: ["-r", chartDir, path] }).output();
  assert.ok(success);
  await Deno.rename(`${path}/templates/NOTES.txt`, `${path}/notes.tpl`);
  await Deno.writeTextFile(`${path}/templates/notes.yaml`, 'notes: {{ tpl (.Files.Get "notes.tpl") . | toJson }}\n');
  return path;
}

// deno-lint-ignore no-explicit-any
function parse(text: string): any[] {
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
}

/** Rules of the chart, whatever the values. */
function checkAll(text: string): void {
  const documents = parse(text);
  for (const { kind, metadata } of documents) {
    assert.ok(metadata.name.startsWith("edge"), `${kind} ${metadata.name}`);
    assert.equal(metadata.namespace, "gateways");
  }
  const { spec } = documents.find(({ kind }) => kind === "DaemonSet");
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const isHot = container.command[0] === "/opt/epochd/epochd";
  const isCrossPod = container.args.includes("--cross-pod");
  const { maxSurge, maxUnavailable } = spec.updateStrategy.rollingUpdate;
  // One of the two, or Kubernetes refuses the object; surge only where pods hand over.
  assert.equal(maxSurge === 0, maxUnavailable !== 0);
  if (maxSurge !== 0) assert.ok(isCrossPod && pod.hostNetwork);
  if (pod.hostNetwork) {
    assert.equal(pod.dnsPolicy, "ClusterFirstWithHostNet");
    assert.equal(container.ports, undefined);
  }
  assert.equal(pod.automountServiceAccountToken, false);
  assert.equal(pod.securityContext.runAsNonRoot, true);
  for (const one of [...pod.initContainers ?? [], container]) {
    const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities, privileged } = one.securityContext;
    assert.deepEqual(
      { allowPrivilegeEscalation, readOnlyRootFilesystem, drop: capabilities.drop, privileged },
      { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, drop: ["ALL"], privileged: undefined },
    );
    assert.equal(capabilities.add === undefined, one.name !== "host-dirs");
    // deno-lint-ignore no-explicit-any
    assert.deepEqual(one.volumeMounts.filter((mount: any) => mount.subPath !== undefined), []);
  }
  // deno-lint-ignore no-explicit-any
  const hostPaths = pod.volumes.filter((volume: any) => volume.hostPath !== undefined).map((volume: any) =>
    volume.name
  );
  assert.deepEqual(hostPaths, isCrossPod ? ["state", "shm"] : []);
  if (!isHot) return;
  assert.equal(spec.template.metadata.annotations["checksum/bootstrap"], undefined);
  assert.deepEqual(container.readinessProbe.exec.command.slice(1, 3), ["--ready-marker", "/run/epochd/ready"]);
  const known = runFlags.flatMap(({ field }) => [`--${field.flag}`, `--no-${field.flag}`]);
  const flags = container.args.filter((arg: string) => arg.startsWith("--")).map((arg: string) => arg.split("=")[0]);
  assert.deepEqual(flags.filter((one: string) => !known.includes(one)), []);
  assert.ok(flags.includes("--base-id"));
}
