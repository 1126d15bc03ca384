// Owns: Envoy's admin address as people write it. Must not: connect, or read a bootstrap.

import type { AdminAddress } from "../core/epoch.ts";

export const adminAddressExamples = "an address such as 127.0.0.1:9901, [::1]:9901 or unix:/run/envoy/admin.sock";

export function parseAdminAddress(text: string): AdminAddress | undefined {
  const path = text.startsWith("unix:") ? text.slice("unix:".length) : text;
  if (path.startsWith("/")) return path.includes("\0") ? undefined : { kind: "unix", path };
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { kind: "tcp", host, port } : undefined;
}
