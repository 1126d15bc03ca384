// Owns: when the API may be reached over TCP: never without knowing who asks, never in the clear from elsewhere.
// Must not: look at files, or listen.

import { isLoopback } from "./listen_address.ts";
import type { Namer, Problem } from "./problem.ts";
import type { ConfigFields } from "./schema.ts";

/** node:tls accepts every client certificate before it (2.6.10, 2.7.1, 2.7.6), silently. */
export const leastTcpRuntime = "2.7.14";

export function checkApiRules({ api }: ConfigFields, nameOf: Namer, runtime: string): readonly Problem[] {
  const name = (key: keyof typeof api) => nameOf(["api", key]);
  const problems: Problem[] = [];
  const say = (key: keyof typeof api, value: string | undefined, expected: string) => {
    problems.push({ where: name(key), ...(value === undefined ? {} : { value }), expected });
  };
  if ((api.tls_cert === undefined) !== (api.tls_key === undefined)) {
    const [there, missing] = api.tls_cert === undefined
      ? ["tls_key", "tls_cert"] as const
      : ["tls_cert", "tls_key"] as const;
    say(there, api[there], `expected ${name(missing)} with it`);
  }
  if (api.client_ca !== undefined && api.tls_cert === undefined) {
    say("client_ca", api.client_ca, `expected ${name("tls_cert")} with it, client certificates come with TLS`);
  }
  if (api.client_roles.length > 0 && api.client_ca === undefined) {
    say(
      "client_roles",
      api.client_roles[0]!.text,
      `expected ${name("client_ca")} with it, which verifies certificates`,
    );
  }
  if (api.listen === undefined) {
    const alone = (["tls_cert", "client_ca", "keys_file"] as const).find((key) => api[key] !== undefined);
    if (alone !== undefined) say(alone, api[alone], `expected ${name("listen")} with it, the socket needs none of it`);
    return problems;
  }
  const { host, port } = api.listen;
  const shown = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (!isLoopback(api.listen) && api.tls_cert === undefined) {
    say("listen", shown, `expected ${name("tls_cert")} with it, or a loopback address: keys are not sent in the clear`);
  }
  if (api.client_ca === undefined && api.keys_file === undefined) {
    say("listen", shown, `expected ${name("client_ca")} or ${name("keys_file")} with it: nobody is let in unknown`);
  }
  if (api.client_ca !== undefined && api.client_roles.length === 0 && api.keys_file === undefined) {
    say("client_ca", api.client_ca, `expected ${name("client_roles")} with it: no certificate would have a role`);
  }
  if (isOlder(runtime, leastTcpRuntime)) {
    const why = "older ones let in clients without a certificate";
    say("listen", shown, `expected Deno ${leastTcpRuntime} or newer to listen over TCP (${why}), this is ${runtime}`);
  }
  return problems;
}

export function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split(/[.+-]/, 3).map(Number));
  for (let part = 0; part < 3; part++) {
    const [a, b] = [one?.[part] ?? NaN, other?.[part] ?? 0];
    // A version that can't be read counts as too old.
    if (a !== b) return !(a > b);
  }
  return false;
}
