/** docs/metrics.md. Owns its words; names, types, labels and meanings come from the metrics themselves. */
import { Metrics } from "../../lib/observe/metrics.ts";
import { table } from "./markdown.ts";

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

export function metricsDocument(): string {
  const { registry } = new Metrics({ status: () => ({}), droppedLogLines: () => 0 });
  const described = registry.getMetricsAsArray() as unknown as readonly Described[];
  const rows = described.map(({ name, help, type, labelNames }) => [
    `\`${name}\``,
    type,
    labelNames.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  const [own, process] = [
    rows.filter(([name]) => name!.startsWith("`epochd_")),
    rows.filter(([name]) => !name!.startsWith("`epochd_")),
  ];
  return `<!-- Made by tools/generate.ts from lib/observe/metrics.ts; edit that. -->

# Metrics

\`GET /metrics\` of epochd's API, in Prometheus' text format. Envoy's own metrics are at its admin; these are what epochd does with it.
Counters of a service begin at 0 with the first scrape, so that \`increase()\` sees the first time something happens.

\`\`\`yaml
# Prometheus, over TCP with a key of role read (\`epochd key create prometheus --role read\`)
scrape_configs:
  - job_name: epochd
    scheme: https
    authorization: { credentials_file: /etc/prometheus/epochd.key }
    static_configs: [{ targets: ["10.0.0.7:9902"] }]
\`\`\`

What one asks them at night:

| question | expression |
|---|---|
| is a service not ready? | \`epochd_ready == 0\` |
| did a change not go through? | \`increase(epochd_handoffs_total{result="failed"}[15m]) > 0\` |
| is somebody's bootstrap refused since then? | \`epochd_refused_contents > 0\` |
| did an Envoy die? | \`increase(epochd_newest_deaths_total[15m]) > 0\` |
| how long takes a handoff? | \`histogram_quantile(0.99, sum by (le) (rate(epochd_handoff_seconds_bucket[1h])))\` |
| do drains run into the parent shutdown time? | \`histogram_quantile(0.5, sum by (le) (rate(epochd_drain_seconds_bucket[1d])))\` |
| were connections refused? | \`increase(epochd_service_gap_seconds_count[1h]) > 0\` |
| does epochd's log lose lines? | \`increase(epochd_log_lines_dropped_total[1h]) > 0\` |

## epochd

${table(["metric", "type", "labels", "meaning"], own)}
## The process

${table(["metric", "type", "labels", "meaning"], process)}`;
}
