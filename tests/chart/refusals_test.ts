/** What the chart refuses, and in which words. */
import assert from "node:assert/strict";
import { helmObstacle, template } from "./helm.ts";

interface Case {
  readonly name: string;
  readonly set: readonly string[];
  readonly says: string;
}

const crossPod = ["hostNetwork=true", "hotRestart.crossPod=true"];

const metrics = ["metrics.enabled=true", "metrics.tls.secretName=tls", "metrics.keys.secretName=keys"];
const monitor = [
  ...metrics,
  "metrics.podMonitor.enabled=true",
  "metrics.podMonitor.authorization.secretName=key",
];

const cases: readonly Case[] = [
  {
    name: "surge without crossPod",
    set: ["hotRestart.surge=true", "hostNetwork=true"],
    says:
      "hotRestart.surge true: expected hotRestart.crossPod true too, two pods of a node can't take over from each other without it",
  },
  {
    name: "crossPod without hot restart",
    set: [...crossPod, "hotRestart.enabled=false"],
    says: "hotRestart.crossPod true: expected hotRestart.enabled true too",
  },
  {
    name: "crossPod without hostNetwork",
    set: ["hotRestart.crossPod=true"],
    says:
      "hotRestart.crossPod true: expected hostNetwork true too, epochs hand over through sockets of one network namespace",
  },
  {
    name: "ports on the node's network",
    set: ["hostNetwork=true", "ports[0].containerPort=80"],
    says:
      "ports: expected none with hostNetwork, a surge pod would stay Pending for want of free ports; listeners need no declaration",
  },
  {
    name: "a network policy on the node's network",
    set: ["hostNetwork=true", "networkPolicy.enabled=true"],
    says:
      "networkPolicy.enabled true: expected hostNetwork false, network policies don't apply to pods on the node's network",
  },
  {
    name: "a drain as long as the parent's life",
    set: ["settings.drain_time=15s"],
    says:
      "settings.drain_time 15s: expected less than settings.parent_shutdown_time, which is 15s: a predecessor would end before it has drained",
  },
  {
    name: "a grace period that a predecessor does not survive",
    set: ["settings.parent_shutdown_time=55s"],
    says:
      "settings.parent_shutdown_time 55s: expected less than terminationGracePeriodSeconds (60) less 5 s: kubelet would kill a predecessor that still drains",
  },
  {
    name: "the same by other units",
    set: ["settings.drain_time=45s", "settings.parent_shutdown_time=0.5m20s", "terminationGracePeriodSeconds=55"],
    says:
      "settings.parent_shutdown_time 0.5m20s: expected less than terminationGracePeriodSeconds (55) less 5 s: kubelet would kill a predecessor that still drains",
  },
  {
    name: "a delay before the drain that is too long",
    set: ["settings.pre_drain_delay=45s"],
    says:
      "settings.pre_drain_delay 45s: expected less than terminationGracePeriodSeconds (60) less settings.drain_time (10s) and 5 s",
  },
  {
    name: "a misspelt setting",
    set: ["settings.drian_time=1s"],
    says: "additional properties 'drian_time' not allowed",
  },
  {
    name: "a misspelt value",
    set: ["hotrestart.enabled=true"],
    says: "additional properties 'hotrestart' not allowed",
  },
  {
    name: "a setting that the chart decides",
    set: ["settings.cross_pod=true"],
    says: "additional properties 'cross_pod' not allowed",
  },
  ...["podMonitor", "prometheusRule", "dashboard"].map((gate) => ({
    name: `${gate} without metrics`,
    set: [`metrics.${gate}.enabled=true`],
    says:
      `metrics.${gate}.enabled true: expected metrics.enabled true too, without it epochd answers nobody outside its pod`,
  })),
  {
    name: "metrics without hot restart",
    set: [...metrics, "hotRestart.enabled=false"],
    says: "metrics.enabled true: expected hotRestart.enabled true too, the metrics are epochd's",
  },
  {
    name: "metrics without a certificate",
    set: ["metrics.enabled=true", "metrics.keys.secretName=keys"],
    says:
      "metrics.tls.secretName: expected a Secret with certificate and private key, epochd sends nothing in the clear",
  },
  {
    name: "metrics without keys",
    set: ["metrics.enabled=true", "metrics.tls.secretName=tls"],
    says: "metrics.keys.secretName: expected a Secret with a keys file, epochd lets nobody in unknown",
  },
  {
    name: "metrics beside an address of the settings",
    set: [...metrics, "settings.api_listen=0.0.0.0:1"],
    says: "settings.api_listen: expected none with metrics.enabled, which sets it",
  },
  {
    name: "a PodMonitor without a key",
    set: [...metrics, "metrics.podMonitor.enabled=true"],
    says: "metrics.podMonitor.authorization.secretName: expected a Secret with the key that Prometheus sends",
  },
  {
    name: "a PodMonitor that could verify no certificate",
    set: monitor,
    says:
      "metrics.podMonitor.tlsConfig: expected ca, serverName or insecureSkipVerify, pods are scraped by an IP that no public certificate names",
  },
  {
    name: "a PodMonitor without the client certificate that is required",
    set: [...monitor, "metrics.podMonitor.tlsConfig.insecureSkipVerify=true", "settings.api_client_ca=/ca.crt"],
    says:
      "metrics.podMonitor.tlsConfig: expected cert and keySecret with settings.api_client_ca, which lets nobody in without a client certificate",
  },
  {
    name: "a PodMonitor with a file, which it can't have",
    set: [...monitor, "metrics.podMonitor.tlsConfig.caFile=/ca.crt"],
    says: "additional properties 'caFile' not allowed",
  },
  { name: "a port that is none", set: [...metrics, "metrics.port=0"], says: "at '/metrics/port'" },
  { name: "a duration without a unit", set: ["settings.drain_time=10"], says: "at '/settings/drain_time'" },
  { name: "a base id that is none", set: ["settings.base_id=-1"], says: "at '/settings/base_id'" },
  { name: "a user that is root", set: ["podSecurityContext.runAsUser=0"], says: "at '/podSecurityContext/runAsUser'" },
  {
    name: "a budget in percent",
    set: ["podDisruptionBudget.minAvailable=50%"],
    says: "at '/podDisruptionBudget/minAvailable'",
  },
  { name: "a digest that is none", set: ["envoy.image.digest=latest"], says: "at '/envoy/image/digest'" },
];

for (const { name, set, says } of cases) {
  Deno.test({
    name: `the chart refuses ${name}${helmObstacle === undefined ? "" : ` (${helmObstacle})`}`,
    ignore: helmObstacle !== undefined,
    async fn() {
      const { code, stderr } = await template(...set.flatMap((value) => ["--set", value]));
      assert.notEqual(code, 0, "it rendered");
      assert.ok(stderr.includes(says), stderr);
    },
  });
}

Deno.test({
  name: `the arithmetic allows what just fits${helmObstacle === undefined ? "" : ` (${helmObstacle})`}`,
  ignore: helmObstacle !== undefined,
  async fn() {
    const fits = ["drain_time=44s", "parent_shutdown_time=44.9s", "pre_drain_delay=10s"];
    const { code, stderr } = await template(...fits.flatMap((value) => ["--set", `settings.${value}`]));
    assert.equal(code, 0, stderr);
  },
});
