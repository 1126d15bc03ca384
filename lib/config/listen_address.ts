// Owns: where the API listens beside its socket: an address of TCP as people write it. Must not: listen.

import { parseAdminAddress } from "./admin_address.ts";

export interface ListenAddress {
  readonly kind: "tcp";
  readonly host: string;
  readonly port: number;
}

export const listenAddressExamples = "an address such as 127.0.0.1:9002, [::1]:9002 or 0.0.0.0:9002";

export function parseListenAddress(text: string): ListenAddress | undefined {
  const address = parseAdminAddress(text);
  return address?.kind === "tcp" ? address : undefined;
}

/** Reached from this machine alone (under hostNetwork: from every pod of the host network). */
export function isLoopback({ host }: ListenAddress): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
