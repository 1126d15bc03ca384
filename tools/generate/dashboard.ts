/** charts/epochd/files/dashboard.json. Owns what the Grafana dashboard shows; the chart puts it into a ConfigMap as it is. */

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly type?: "timeseries" | "stat" | "state-timeline";
  readonly unit?: string;
  /** Expression and legend. */
  readonly shows: readonly (readonly [expr: string, legend: string])[];
}

const pods = 'namespace=~"$namespace",pod=~"$pod"';
const own = `${pods},service=~"$service"`;
const columns = 3;
const [width, height] = [24 / columns, 8];

const increased = (metric: string, by: string) => `sum by (${by}) (increase(${metric}{${own}}[$__rate_interval]))`;

/** They are rare: over an hour there is something to see. */
function quantiles(metric: string, what: string): Panel["shows"] {
  return [0.5, 0.99].map((share) => [
    `histogram_quantile(${share}, sum by (le) (rate(${metric}_bucket{${own}}[1h])))`,
    `${what} p${share * 100}`,
  ]);
}

const panels: readonly Panel[] = [
  {
    title: "Ready pods",
    type: "stat",
    shows: [[`sum(epochd_ready{${own}})`, "ready"], [`count(epochd_ready{${own}} == 0) or vector(0)`, "not ready"]],
  },
  {
    title: "Readiness",
    description: "1 while the service is ready, else 0",
    type: "state-timeline",
    shows: [[`min by (pod, service) (epochd_ready{${own}})`, "{{pod}} {{service}}"]],
  },
  {
    title: "Epoch",
    shows: [[
      `max by (pod, service, envoy_version) (epochd_epoch{${own}})`,
      "{{pod}} {{service}} {{envoy_version}}",
    ]],
  },
  {
    title: "Handoffs by result",
    shows: [[increased("epochd_handoffs_total", "result, source"), "{{result}} ({{source}})"]],
  },
  {
    title: "Triggers by answer",
    shows: [[increased("epochd_triggers_total", "answer, source"), "{{answer}} ({{source}})"]],
  },
  {
    title: "Durations: preflight, start, handoff",
    description: "Of the last hour; empty where there was none",
    unit: "s",
    shows: [
      ...quantiles("epochd_preflight_seconds", "preflight"),
      ...quantiles("epochd_epoch_start_seconds", "spawn to LIVE"),
      ...quantiles("epochd_handoff_seconds", "handoff"),
    ],
  },
  {
    title: "Drain",
    description: "From LIVE to the end of the predecessor: at the parent shutdown time, what was still open was cut",
    unit: "s",
    shows: quantiles("epochd_drain_seconds", "drain"),
  },
  { title: "Envoys by role", shows: [[`sum by (role) (epochd_epochs{${own}})`, "{{role}}"]] },
  { title: "Phases", shows: [[`sum by (phase) (epochd_phase{${own}}) > 0`, "{{phase}}"]] },
  {
    title: "Refusals",
    shows: [
      [increased("epochd_refusals_total", "reason"), "{{reason}}"],
      [`sum(epochd_refused_contents{${own}})`, "contents that are refused now"],
    ],
  },
  {
    title: "Child exits",
    shows: [
      [increased("epochd_child_exits_total", "role, how"), "{{role}} {{how}}"],
      [increased("epochd_newest_deaths_total", "answer"), "serving epoch died, {{answer}}"],
    ],
  },
  {
    title: "Time without service",
    description: "In which nobody accepted connections",
    unit: "s",
    shows: [[increased("epochd_service_gap_seconds_sum", "pod, service"), "{{pod}} {{service}}"]],
  },
  {
    title: "Troubles",
    shows: [
      [increased("epochd_epoch_hangs_total", "pod"), "{{pod}} hung"],
      [increased("epochd_marker_failures_total", "pod"), "{{pod}} marker not written"],
      [
        `sum by (pod) (increase(epochd_segment_repairs_total{${own},result="failed"}[$__rate_interval]))`,
        "{{pod}} segment not repaired",
      ],
      [
        `sum by (pod) (increase(epochd_log_lines_dropped_total{${pods}}[$__rate_interval]))`,
        "{{pod}} log lines dropped",
      ],
      [`changes(process_start_time_seconds{${pods}}[$__rate_interval])`, "{{pod}} started"],
    ],
  },
  {
    title: "Memory of epochd",
    unit: "bytes",
    shows: [[`max by (pod) (process_resident_memory_bytes{${pods}})`, "{{pod}}"]],
  },
  {
    title: "CPU of epochd",
    description: "Cores, without Envoy's",
    shows: [[`max by (pod) (rate(process_cpu_seconds_total{${pods}}[$__rate_interval]))`, "{{pod}}"]],
  },
];

export function dashboardDocument(): string {
  const shown = panels.map((panel, index) => JSON.stringify(rendered(panel, index)));
  const head = JSON.stringify({
    uid: "epochd",
    title: "epochd",
    description: "Made by tools/generate/dashboard.ts; edit that.",
    tags: ["epochd", "envoy"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: variables() },
  });
  // A panel a line, so that a change shows where it is.
  return `${head.slice(0, -1)},\n"panels": [\n${shown.join(",\n")}\n]}\n`;
}

function variables(): readonly unknown[] {
  const query = (name: string, of: string) => ({
    name,
    type: "query",
    datasource,
    query: `label_values(${of}, ${name})`,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  });
  return [
    { name: "datasource", type: "datasource", query: "prometheus" },
    query("namespace", "epochd_ready"),
    query("pod", 'epochd_ready{namespace=~"$namespace"}'),
    query("service", `epochd_ready{${pods}}`),
  ];
}

const datasource = { type: "prometheus", uid: "${datasource}" };

function rendered({ title, description, type = "timeseries", unit = "short", shows }: Panel, index: number) {
  return {
    id: index + 1,
    title,
    ...(description === undefined ? {} : { description }),
    type,
    datasource,
    gridPos: { x: (index % columns) * width, y: Math.floor(index / columns) * height, w: width, h: height },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: shows.map(([expr, legendFormat], at) => ({
      refId: String.fromCharCode(65 + at),
      datasource,
      expr,
      legendFormat,
    })),
  };
}
