import assert from "node:assert/strict";
import { checkApiRules, isOlder } from "../../../lib/config/api_rules.ts";
import { problemLine } from "../../../lib/config/problem.ts";
import { configSchema } from "../../../lib/config/schema.ts";

function problems(api: Record<string, unknown>, runtime = "2.9.8"): readonly string[] {
  const fields = configSchema.parse({ services: {}, api });
  return checkApiRules(fields, (path) => path.join("."), runtime).map(problemLine);
}

const tls = { tls_cert: "/c", tls_key: "/k" };

Deno.test("api.listen is taken on loopback with keys, and anywhere with TLS and keys or certificates", () => {
  for (
    const api of [
      {},
      { listen: "127.0.0.1:9002", keys_file: "/keys" },
      { listen: "[::1]:9002", keys_file: "/keys" },
      { listen: "localhost:9002", keys_file: "/keys" },
      { listen: "0.0.0.0:9002", keys_file: "/keys", ...tls },
      { listen: "10.0.0.1:9002", client_ca: "/ca", client_roles: ["admin:CN=a"], ...tls },
    ]
  ) assert.deepEqual(problems(api), [], JSON.stringify(api));
});

Deno.test("api.listen is refused in the clear from elsewhere, with nobody known, and half described", () => {
  const cases: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [
      { listen: "0.0.0.0:9002", keys_file: "/keys" },
      /^api\.listen 0\.0\.0\.0:9002: expected api\.tls_cert with it, or a loopback/,
    ],
    [{ listen: "[2001:db8::1]:9002", keys_file: "/k" }, /^api\.listen \[2001:db8::1\]:9002: expected api\.tls_cert/],
    [{ listen: "127.0.0.1:9002" }, /nobody is let in unknown/],
    [{ listen: "10.0.0.1:9002", ...tls }, /nobody is let in unknown/],
    [{ listen: "10.0.0.1:9002", ...tls, client_ca: "/ca" }, /no certificate would have a role/],
    [
      { listen: "127.0.0.1:9002", keys_file: "/k", tls_cert: "/c" },
      /^api\.tls_cert \/c: expected api\.tls_key with it/,
    ],
    [{ listen: "127.0.0.1:9002", keys_file: "/k", client_ca: "/ca" }, /client certificates come with TLS/],
    [{ listen: "127.0.0.1:9002", keys_file: "/k", client_roles: ["read:CN=a"] }, /expected api\.client_ca with it/],
    [{ keys_file: "/k" }, /^api\.keys_file \/k: expected api\.listen with it/],
  ];
  for (const [api, expected] of cases) {
    const found = problems(api);
    assert.ok(found.some((line) => expected.test(line)), `${JSON.stringify(api)}: ${found.join("\n")}`);
  }
});

Deno.test("api.listen is refused on a runtime that lets in clients without a certificate, by its name", () => {
  const api = { listen: "127.0.0.1:9002", keys_file: "/k" };
  for (const old of ["2.6.10", "2.7.13", "1.46.0", "unknown"]) {
    const expected =
      `expected Deno 2.7.14 or newer to listen over TCP (older ones let in clients without a certificate)`;
    assert.deepEqual(problems(api, old), [`api.listen 127.0.0.1:9002: ${expected}, this is ${old}`]);
  }
  for (const fine of ["2.7.14", "2.7.14+abc", "2.8.0", "3.0.0"]) assert.equal(isOlder(fine, "2.7.14"), false, fine);
});
