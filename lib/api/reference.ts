// Owns: the API for people: one page of text, without script and without outside resources. Must not: say what the table of
// operations doesn't.

import { version } from "../observe/version.ts";
import { configFieldRows } from "../config/field_rows.ts";
import { type Operation, operations } from "./operation.ts";

export function referencePage(): string {
  const rows = operations.map(describeOperation).join("\n");
  const fields = configFieldRows().map((row) =>
    `<tr><td><code>${html(row.field)}</code></td><td>${html(row.lifecycle)}</td><td><code>${
      html(row.default)
    }</code></td><td>${html(row.description)}</td></tr>`
  ).join("\n");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>epochd ${
    html(version)
  }: API</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1a1a;background:#fff}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td,section{border-color:#333!important}}
code,pre{font:13px/1.4 ui-monospace,monospace}h2{font-size:1rem;margin:0}section{border-top:1px solid #ddd;padding:.8rem 0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-top:1px solid #eee}
.m{display:inline-block;min-width:4rem;font-weight:600}.r{float:right;opacity:.7}
</style></head><body>
<h1>epochd ${html(version)}: API</h1>
<p>Over the unix socket nobody logs in. Over TCP a key (<code>Authorization: Bearer ...</code>, made by <code>epochd key create</code>) or a
client certificate says who asks; the role that an operation needs stands at its right. For programs: <a href="openapi.json">openapi.json</a>,
<a href="v1/config/schema">the schema of epochd.yaml</a>.</p>
${rows}
<h1>Configuration</h1>
<table><tr><th>field</th><th>takes effect</th><th>default</th><th></th></tr>
${fields}
</table>
</body></html>
`;
}

function describeOperation(
  { method, path, summary, role, query = {}, headers = [], body, stream, answers }: Operation,
): string {
  const parameters = [
    ...Object.entries(query).map(([name, parameter]) =>
      "choices" in parameter
        ? [`?${name}=${parameter.choices.join("|")}`, `${parameter.description} (default ${parameter.default})`]
        : [`?${name}=`, `${parameter.description} (${parameter.expected})`]
    ),
    ...headers.map((name) => [name, "header"]),
    ...(body === undefined ? [] : [["body", `${body.schema}: ${body.types.join(" or ")}`]]),
    ...(stream === undefined ? [] : [["body", `${stream.type}, of any length`]]),
    ...Object.entries(answers).map(([status, { description }]) => [status, description]),
  ];
  const table = parameters.map(([name, text]) =>
    `<tr><td><code>${html(name!)}</code></td><td>${html(text!)}</td></tr>`
  );
  return `<section><span class="r">${html(role)}</span><h2><span class="m">${method}</span><code>${
    html(path)
  }</code></h2><p>${html(summary)}</p><table>${table.join("")}</table></section>`;
}

function html(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
