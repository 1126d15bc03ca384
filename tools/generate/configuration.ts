/** docs/configuration.md. Owns its words; settings come from the schema, events from the catalogues. */
import type { FieldDescription } from "../../lib/config/field.ts";
import { apiFieldDescriptions, logFieldDescriptions } from "../../lib/config/schema.ts";
import { serviceFieldDescriptions } from "../../lib/config/service_schema.ts";
import { catalogue } from "../../lib/observe/catalogue.ts";
import { shellCatalogue } from "../../lib/observe/shell_catalogue.ts";
import type { FieldKind } from "../../lib/observe/row.ts";
import { defaultOf, flagOf } from "./flags_table.ts";
import { table } from "./markdown.ts";

export function configurationDocument(): string {
  return `<!-- Made by tools/generate.ts from lib/config and lib/observe; edit those. -->

# Configuration

Every setting is a flag of \`epochd run\` and a field of epochd.yaml (\`--config FILE\`). Flags win. Flags describe one service, called
\`envoy\`; a file may describe several, each with a base id, a state directory and a ready marker of its own:

\`\`\`yaml
services:
  envoy:
    envoy_path: /usr/local/bin/envoy
    envoy_config: /etc/envoy/envoy.yaml
    drain_time: 10s
    parent_shutdown_time: 15s
api:
  socket: /run/epochd/api.sock
log:
  level: info
\`\`\`

The lifecycle of a setting says when a change of it takes effect: \`dynamic\` at once, \`hot-restart\` with the next epoch, \`static\` only
with a new supervisor.

## services.NAME

${fields(serviceFieldDescriptions)}
## api

${fields(apiFieldDescriptions)}
## log

${fields(logFieldDescriptions)}
## Log events

With \`--log-format json\` each line is an object with \`time\`, \`level\`, \`event\`, \`msg\`, \`service\` where it is one's, and the fields below.
Times end in \`Ms\`. A level that depends on what happened is shown as such.

${events()}`;
}

function fields(descriptions: readonly FieldDescription[]): string {
  const rows = descriptions.map((field) => [
    code(field.key),
    code(flagOf(field)),
    field.choices === undefined ? defaultOf(field) : `${defaultOf(field)} of ${field.choices.map(code).join(", ")}`,
    field.lifecycle,
    field.description,
  ]);
  return table(["field", "flag", "default", "lifecycle", "meaning"], rows);
}

function events(): string {
  const rows = Object.entries({ ...shellCatalogue, ...catalogue }).map(([event, row]) => [
    code(event),
    typeof row.level === "function" ? "depends" : row.level,
    Object.entries(row.fields).flatMap(([name, kind]) => inLine(name, kind)).map(code).join(", "),
  ]);
  return table(["event", "level", "fields"], rows.sort(([a], [b]) => a! < b! ? -1 : 1));
}

/** What becomes of a fact's field in a line of JSON. */
function inLine(name: string, kind: FieldKind): readonly string[] {
  if (kind === "exit") return ["exitCode", "exitSignal"];
  return kind === "refusal" ? ["refusal", "detail"] : [name];
}

function code(text: string): string {
  return `\`${text}\``;
}
