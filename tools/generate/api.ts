/** docs/api.md. Owns its words; operations come from the table that routing and OpenAPI use, static fields from the schema. */
import { type Operation, operations } from "../../lib/api/operation.ts";
import type { FieldDescription } from "../../lib/config/field.ts";
import { apiFieldDescriptions } from "../../lib/config/schema.ts";
import { serviceFieldDescriptions } from "../../lib/config/service_schema.ts";
import { table } from "./markdown.ts";

/** How one sees it from a shell, where a command of epochd shows it; else by curl on the socket. */
const commands: Readonly<Record<string, string>> = {
  status: "epochd status --json",
  epochs: "epochd status",
  restart: "epochd restart --service edge --wait",
  getConfig: "epochd config get",
  putConfig: "epochd config diff new.yaml",
  patchConfig: "epochd config set log.level=debug",
  getServices: "epochd config get services",
  getService: "epochd config get services.edge",
  patchService: "epochd config set services.edge.drain_time=20s --wait",
  reload: "epochd reload --wait",
  rollback: "epochd rollback 12",
  upgrade: "epochd upgrade --to ./epochd",
  schema: "epochd config schema",
  history: "epochd history",
  events: "epochd events --follow",
  page: "ssh -L 9902:/run/epochd/api.sock NODE, then http://localhost:9902/",
};

export function apiDocument(): string {
  return `<!-- Made by tools/generate.ts from lib/api and lib/config; edit those. -->

# API

The supervisor answers on a unix socket (\`--api-socket\`, 0600 in a directory of 0700): whoever reaches it is its own user or root, and
may everything. Over TCP (\`--api-listen\`) it answers on loopback, or anywhere with TLS, and always only to those it knows: by a client
certificate or by an API key. A supervisor describes itself: \`/openapi.json\` for programs, \`/reference\` for people.

    curl --unix-socket /run/epochd/api.sock http://epochd/v1/status

${operationTable()}
## One set of rules

Whether a configuration comes by SIGHUP, \`reload\`, the watched epochd.yaml, PUT, PATCH or a rollback:

1. It is checked as a whole. What is wrong answers 422 with one entry a thing to mend; the log says the same.
2. It is compared with what runs. A change of a static field refuses it as a whole (409): field, both values, why, what to do.
3. Services that need a new epoch, and new ones, pass their preflight first (409 where one does not). Nothing has changed up to here.
4. What came by the API is written into epochd.yaml: only the places that changed, by a rename, with mode and owner. A file that was
   edited since epochd took it, or is read-only, refuses the change, unless \`persist=false\`.
5. Dynamic fields hold at once. A new epoch takes the others: SIGHUP and \`reload\` give one to every service, the others only to those
   that need it. A service that is added or removed is none of the others' business.

\`dry_run=true\` stops after 3 and says what would happen, with the connections affected. \`wait=live\` or \`drained\` holds the answer.
\`If-Match\` with the ETag of a read makes sure that nobody else was faster (412). An \`Idempotency-Key\` on a restart asks once, however
often it is sent. The last 20 configurations are kept in the state directory of the first service; \`rollback\` goes back to any of them.

A configuration that was taken and whose new epoch then fails to run stays taken (409 \`handoff_failed\` where it was waited for): the
serving epoch goes on, the handoff is tried again as \`retry_limit\` says, and \`rollback\` brings the old one back.

## What can't change while epochd runs

${staticTable()}
A value that a flag or the environment gives wins over file and API for the life of the supervisor; asking for another one is refused.

## Over TCP

\`\`\`yaml
api:
  listen: 0.0.0.0:9002
  tls_cert: /etc/epochd/tls/tls.crt
  tls_key: /etc/epochd/tls/tls.key
  client_ca: /etc/epochd/tls/ca.crt
  client_roles: ["admin:CN=alice,O=ops", "operate:URI:spiffe://cluster/ns/ci/sa/deploy"]
  keys_file: /etc/epochd/keys
\`\`\`

| role | may |
| --- | --- |
| \`read\` | look |
| \`operate\` | and start new epochs, and reload |
| \`admin\` | and change the configuration |

\`epochd key create ci --role operate --file /etc/epochd/keys\` prints a key once and keeps its sha256; clients send it as
\`Authorization: Bearer KEY\`. Certificates and keys are read again when they change: a removed keys file revokes its keys, a broken one
changes nothing. Every write and every denial is a log line \`api_audit\` with who asked: the channel, and the key's id or the
certificate's name. A runtime that does not enforce client certificates (Deno before 2.7.14) is refused with \`api.listen\`.

Limits: 64 connections a listener (each carries one request), 16 KiB of head, 256 KiB of body, 5 s for a request to arrive and for a TLS
handshake, 10 s for a client to take a piece of the answer, 32 event streams.
`;
}

function operationTable(): string {
  return table(
    ["request", "role", "what", "seen by"],
    operations.map((operation) => [
      `\`${operation.method} ${operation.path}\``,
      operation.role,
      operation.summary.replaceAll("\n", " "),
      `\`${commands[operation.id] ?? curl(operation)}\``,
    ]),
  );
}

function curl({ path }: Operation): string {
  return `curl --unix-socket /run/epochd/api.sock http://epochd${path.replace("{name}", "edge")}`;
}

function staticTable(): string {
  const rows = (section: string, fields: readonly FieldDescription[]) =>
    fields.filter(({ lifecycle }) => lifecycle === "static")
      .map(({ key, staticWhy = "it is fixed when epochd starts" }) => [`\`${section}.${key}\``, staticWhy]);
  return table(["field", "because"], [
    ...rows("services.NAME", serviceFieldDescriptions),
    ...rows("api", apiFieldDescriptions),
  ]);
}
