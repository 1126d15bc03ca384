// Owns: a plain Envoy DaemonSet as someone may have it, and a kustomization that adds epochd to it. Must not: know the chart.
import { relative } from "node:path";
import { stringify } from "yaml";
import { projectDir } from "../../../tools/toolchain.ts";
import type { TempDir } from "../../support/tempdir.ts";
import { LISTEN_PORT, releaseBootstrap } from "./release.ts";

const NAME = "own";
/** What the policy `restricted` asks of every container. */
const CONTAINER = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
const POD = { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: { type: "RuntimeDefault" } };

export function ownBootstrap(generation: string): unknown {
  const metadata = { name: `${NAME}-bootstrap` };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data: { "envoy.yaml": releaseBootstrap(generation) } };
}

function daemonSet(): unknown {
  const labels = { "app.kubernetes.io/instance": NAME };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: NAME, labels: { "epochd/inject": "true" } },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          securityContext: POD,
          containers: [{
            name: "envoy",
            image: "localhost/envoy:1.40.0",
            imagePullPolicy: "Never",
            args: ["-c", "/etc/envoy/envoy.yaml"],
            readinessProbe: { tcpSocket: { port: LISTEN_PORT }, periodSeconds: 1 },
            securityContext: CONTAINER,
            volumeMounts: [{ name: "bootstrap", mountPath: "/etc/envoy" }],
          }],
          volumes: [{ name: "bootstrap", configMap: { name: `${NAME}-bootstrap` } }],
        },
      },
    },
  };
}

/** Two kustomizations: `plain`, and `with` epochd by the component. Returns their paths. */
export function writeOwnWorkload(directory: TempDir): { readonly plain: string; readonly withEpochd: string } {
  directory.write("plain/workload.yaml", `${stringify(ownBootstrap("first"))}---\n${stringify(daemonSet())}`);
  directory.write("plain/kustomization.yaml", stringify({ resources: ["workload.yaml"] }));
  const withEpochd = directory.at("with");
  const component = relative(Deno.realPathSync(directory.path) + "/with", `${projectDir}/deploy/kustomize/epochd`);
  const images = [{ name: "epochd", newName: "localhost/epochd", newTag: "test" }];
  directory.write("with/kustomization.yaml", stringify({ resources: ["../plain"], components: [component], images }));
  return { plain: directory.at("plain"), withEpochd };
}
