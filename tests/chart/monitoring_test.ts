/** What the chart's alerts and dashboard ask is there to be asked, parses, and fires when it should. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { Metrics } from "../../lib/observe/metrics.ts";
import { projectDir } from "../../tools/toolchain.ts";
import { debianProgram } from "../support/debian_program.ts";
import { runEpochd } from "../support/epochd.ts";
import { tempDir } from "../support/tempdir.ts";
import { helmObstacle, template } from "./helm.ts";

const promtool = await debianProgram("promtool", "prometheus");

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Described {
  readonly name: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

function test(name: string, obstacle: string | undefined, run: () => Promise<void>): void {
  Deno.test(obstacle === undefined ? name : `${name} (${obstacle})`, { ignore: obstacle !== undefined }, run);
}

// deno-lint-ignore no-explicit-any
async function shown(values: string, manifest: string, ...set: string[]): Promise<any> {
  const path = join(import.meta.dirname!, `values/${values}.yaml`);
  const { code, stdout, stderr } = await template("-f", path, "--show-only", `templates/${manifest}.yaml`, ...set);
  assert.equal(code, 0, stderr);
  return parse(stdout);
}

async function alertsOf(...set: string[]): Promise<readonly Alert[]> {
  const { spec } = await shown("prometheus_rule", "prometheusrule", ...set);
  return spec.groups.flatMap(({ rules }: { rules: Alert[] }) => rules);
}

async function dashboardExpressions(): Promise<readonly string[]> {
  const map = await shown("dashboard", "dashboard");
  assert.equal(map.metadata.labels.grafana_dashboard, "1");
  const { panels } = JSON.parse(map.data["epochd.json"]);
  return panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr));
}

/** What an expression names and no supervisor tells: metrics, and labels of metrics. */
function unknownIn(expr: string): readonly string[] {
  const { registry } = new Metrics({ status: () => ({}), droppedLogLines: () => 0 });
  const described = registry.getMetricsAsArray() as unknown as readonly Described[];
  const series = new Map<string, readonly string[]>();
  for (const { name, type, labelNames } of described) {
    if (type === "histogram") {
      for (const end of ["_bucket", "_sum", "_count"]) series.set(name + end, labelNames);
    } else series.set(name, labelNames);
  }
  const ofTarget = ["namespace", "pod"];
  const unknown: string[] = [];
  const named = [...expr.matchAll(/\b([a-z_]+)\{([^}]*)\}/g)];
  assert.ok(named.length > 0, `no metric in ${expr}`);
  // Nothing is asked of everybody's series.
  assert.equal([...expr.matchAll(/\b(epochd|process)_/g)].length, named.length, expr);
  const [, grouped = ""] = /\bby \(([^)]*)\)/.exec(expr) ?? [];
  for (const [, metric, matchers] of named) {
    const own = series.get(metric!);
    if (own === undefined) unknown.push(metric!);
    const asked = [...matchers!.matchAll(/([a-z_]+)=/g)].map(([, label]) => label!);
    const by = grouped.split(",").map((label) => label.trim()).filter((label) => label !== "" && label !== "le");
    for (const label of [...asked, ...by]) {
      if (own !== undefined && ![...own, ...ofTarget].includes(label)) unknown.push(`${metric}{${label}}`);
    }
  }
  return unknown;
}

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(promtool.path, { args, stdin: "null" }).output();
  const decoder = new TextDecoder();
  return `${code} ${decoder.decode(stdout)}${decoder.decode(stderr)}`;
}

test("every metric and label of alerts and dashboard is one that epochd tells", helmObstacle, async () => {
  const expressions = [...(await alertsOf()).map(({ expr }) => expr), ...await dashboardExpressions()];
  assert.ok(expressions.length > 25);
  for (const expr of expressions) assert.deepEqual(unknownIn(expr), [], expr);
});

Deno.test("a metric or label that no supervisor tells would be found", () => {
  assert.deepEqual(unknownIn("epochd_redy{} == 0"), ["epochd_redy"]);
  assert.deepEqual(unknownIn('sum by (role) (epochd_ready{phase="x"})'), ["epochd_ready{phase}", "epochd_ready{role}"]);
  assert.deepEqual(unknownIn("rate(epochd_drain_seconds{}[1h])"), ["epochd_drain_seconds"]);
});

test("each alert says what it is, and has its part of the runbook", helmObstacle, async () => {
  const runbook = await Deno.readTextFile(join(projectDir, "docs/operations.md"));
  const chapters = [...runbook.matchAll(/^### (Epochd\w+)$/gm)].map(([, name]) => name);
  const alerts = await alertsOf();
  assert.deepEqual(alerts.map(({ alert }) => alert), chapters);
  for (const { alert, labels, annotations } of alerts) {
    assert.match(labels.severity!, /^(critical|warning)$/);
    assert.ok(annotations.summary && annotations.description, alert);
    assert.equal(annotations.runbook_url, `https://runbooks.example.test/operations.md#${alert.toLowerCase()}`);
  }
});

test("promtool takes alerts and dashboard", helmObstacle ?? promtool.obstacle, async () => {
  await using directory = tempDir();
  const { spec } = await shown("prometheus_rule", "prometheusrule");
  const alerts = directory.write("alerts.yaml", stringify(spec));
  assert.match(await run("check", "rules", alerts), /^0 .*SUCCESS: 10 rules found/s);
  const rules = (await dashboardExpressions()).map((expr, index) => ({
    record: `panel:${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m"),
  }));
  const panels = directory.write("panels.yaml", stringify({ groups: [{ name: "panels", rules }] }));
  assert.match(await run("check", "rules", panels), /^0 .*SUCCESS/s);
});

const own = 'namespace="gateways",pod="edge-epochd-x7k2p"';
const edge = `${own},service="edge"`;
const canary = 'namespace="gateways",pod="edge-epochd-canary-x7k2p",service="edge"';
/** What fires after 20 minutes, by the series of a minute each that make it so, or do not. */
const fires: readonly (readonly [alert: string, series: string, values: string])[] = [
  ["EpochdNotReady", `epochd_ready{${edge}}`, "1x17 0x10"],
  ["EpochdHandoffsFailing", `epochd_handoffs_total{${edge},source="bootstrap",result="failed"}`, "0x10 1x20"],
  ["EpochdChangeRefused", `epochd_refused_contents{${edge}}`, "1x30"],
  ["EpochdEpochHung", `epochd_epoch_hangs_total{${edge}}`, "0x15 1x20"],
  ["EpochdMarkerFailing", `epochd_marker_failures_total{${edge}}`, "0x15 1x20"],
  ["EpochdSegmentRepairFailing", `epochd_segment_repairs_total{${edge},result="failed"}`, "0x10 1x20"],
  ["EpochdServiceGap", `epochd_service_gap_seconds_count{${edge}}`, "0x10 1x20"],
  ["EpochdEnvoyDied", `epochd_newest_deaths_total{${edge},answer="revival"}`, "0x10 1x20"],
  ["EpochdRestarted", `process_start_time_seconds{${own}}`, "100x10 700x20"],
];
const quiet: readonly (readonly [series: string, values: string])[] = [
  [`epochd_ready{${edge}}`, "1x10 0x1 1x20"],
  [`epochd_ready{${canary}}`, "0x30"],
  [`epochd_handoffs_total{${edge},source="bootstrap",result="failed"}`, "7x30"],
  [`epochd_handoffs_total{${edge},source="bootstrap",result="live"}`, "0x10 1x20"],
  [`epochd_refused_contents{${edge}}`, "0x30"],
  [`epochd_segment_repairs_total{${edge},result="cleared"}`, "0x10 1x20"],
  [`process_start_time_seconds{${own}}`, "100x30"],
];

const labelsOf = (series: string) =>
  Object.fromEntries([...series.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]));

test("each alert fires for its own reason, and for nobody else's pods", helmObstacle ?? promtool.obstacle, async () => {
  await using directory = tempDir();
  const { spec } = await shown("prometheus_rule", "prometheusrule");
  const plain = { ...spec, groups: spec.groups.map(stripped) };
  const rules = directory.write("alerts.yaml", stringify(plain));
  const severity = new Map((await alertsOf()).map(({ alert, labels }) => [alert, labels.severity!]));
  const ready = { series: `epochd_ready{${edge}}`, values: "1x30" };
  const alertTests = (firing?: string, exp_labels?: Record<string, string>) =>
    [...severity.keys()].map((alertname) => ({
      eval_time: "20m",
      alertname,
      exp_alerts: alertname === firing ? [{ exp_labels: { ...exp_labels, severity: severity.get(alertname)! } }] : [],
    }));
  const tests = fires.map(([alert, series, values]) => {
    const { source: _source, result: _result, ...labels } = labelsOf(series);
    return {
      interval: "1m",
      input_series: [...(alert === "EpochdNotReady" ? [] : [ready]), { series, values }],
      alert_rule_test: alertTests(alert, labels),
    };
  });
  const input_series = quiet.map(([series, values]) => ({ series, values }));
  const nobody = {
    interval: "1m",
    input_series: [{ series: `epochd_ready{${canary}}`, values: "1x30" }],
    alert_rule_test: alertTests("EpochdMetricsMissing", { namespace: "gateways" }),
  };
  const all = [...tests, { interval: "1m", input_series, alert_rule_test: alertTests() }, nobody];
  const path = directory.write("tests.yaml", stringify({ rule_files: [rules], tests: all }));
  assert.match(await run("test", "rules", path), /^0 .*SUCCESS/s);
});

/** promtool compares annotations with all else; they are looked at above. */
// deno-lint-ignore no-explicit-any
function stripped(group: any) {
  return { ...group, rules: group.rules.map((rule: Alert) => ({ ...rule, annotations: {} })) };
}

test("a roll in which a node's port changes hands is no crash", helmObstacle, async () => {
  const exprOf = async (...set: string[]) =>
    (await alertsOf(...set)).find(({ alert }) => alert === "EpochdRestarted")!.expr;
  assert.match(await exprOf(), / > 0$/);
  assert.match(await exprOf("--set", "hostNetwork=true,hotRestart.crossPod=true"), / > 1$/);
});

test("the PodMonitor finds each pod at its address, by IPv4 or IPv6", helmObstacle, async () => {
  const { spec } = await shown("pod_monitor", "podmonitor");
  const [endpoint] = spec.podMetricsEndpoints;
  const addressOf = (ip: string) =>
    endpoint.relabelings
      .filter(({ targetLabel }: { targetLabel?: string }) => targetLabel === "__address__")
      .filter(({ regex }: { regex: string }) => new RegExp(`^(?:${regex})$`).test(ip))
      .map(({ regex, replacement }: { regex: string; replacement: string }) =>
        ip.replace(new RegExp(`^(?:${regex})$`), replacement)
      );
  assert.deepEqual(addressOf("10.0.0.7"), ["10.0.0.7:9910"]);
  assert.deepEqual(addressOf("fd00::7"), ["[fd00::7]:9910"]);
});

for (const values of ["metrics", "pod_monitor"]) {
  test(`epochd takes the arguments of ${values}`, helmObstacle, async () => {
    await using directory = tempDir();
    const { spec } = await shown(values, "daemonset");
    const [{ args }] = spec.template.spec.containers;
    const here = args.map((arg: string) => arg.startsWith("/") ? directory.at(arg.slice(1).replaceAll("/", "_")) : arg);
    assert.ok(here.includes("--api-listen"));
    const { stderr } = await runEpochd(here);
    // Envoy and its bootstrap are the image's; what else it had to say would stand here as well.
    const problems = stderr.trim().split("\n").map((line) => line.replace(/^error: (--[a-z-]+) .*?: .*/, "$1"));
    assert.deepEqual(problems, ["--envoy-config", "--envoy-path"], stderr);
  });
}
