// Owns: who is let in over TCP: the keys of the keys file and the roles of certificates, as they are now.
// Must not: listen, or know what anybody may do.

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { ContentWatch } from "../adapters/file_watch.ts";
import { type ClientRole, roleOf } from "../config/client_role.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import { certificateNames, nameOf } from "./certificate.ts";
import type { Identify, Identity } from "./client_identity.ts";
import { findKey, type KeyEntry, parseKeys } from "./keys.ts";

export class Credentials {
  #keys: readonly KeyEntry[] = [];
  #rules: readonly ClientRole[];
  #watch: { close(): void } | undefined;

  constructor(
    readonly keysPath: string | undefined,
    rules: readonly ClientRole[],
    readonly tell: (fact: ShellFact) => void,
  ) {
    this.#rules = rules;
  }

  /** Reads the keys, and again whenever they change. Until then nobody has one. */
  begin(): void {
    if (this.keysPath === undefined) return;
    this.#watch = new ContentWatch().watch(this.keysPath, (content) => {
      if (content.kind === "usable") return void this.#read();
      // Removed or emptied, and not just for the moment of an edit: its keys are revoked.
      this.#keys = [];
      this.tell({ kind: "api_credentials_failed", what: "keys", problem: `${content.problem}; no key is known` });
    }, () => {});
  }

  close(): void {
    this.#watch?.close();
  }

  useRules(rules: readonly ClientRole[]): void {
    this.#rules = rules;
  }

  /** `secured`: the certificate was verified by its listener. */
  identifier(socket: Socket | TLSSocket, secured: boolean): Identify {
    const from = `from ${socket.remoteAddress ?? "an unknown address"}`;
    const names = secured ? namesOf(socket as TLSSocket) : undefined;
    return (request): Identity => {
      const role = names === undefined ? undefined : roleOf(names, this.#rules);
      if (names !== undefined && role !== undefined) return { who: `certificate ${nameOf(names)} ${from}`, role };
      const [, key] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
      const entry = key === undefined ? undefined : findKey(this.#keys, key);
      if (entry !== undefined) return { who: `key ${entry.id} ${from}`, role: entry.role };
      const who = key !== undefined
        ? "an unknown key"
        : names !== undefined
        ? `certificate ${nameOf(names)} without a role`
        : "nobody";
      return { who: `${who} ${from}`, role: undefined };
    };
  }

  async #read(): Promise<void> {
    const no = (problem: string) => this.tell({ kind: "api_credentials_failed", what: "keys", problem });
    try {
      const parsed = parseKeys(await Deno.readTextFile(this.keysPath!));
      // An edit that went wrong locks nobody out and lets nobody new in.
      if (parsed.kind === "refused") return no(`read ${this.keysPath}: ${parsed.problem}`);
      this.#keys = parsed.entries;
      this.tell({ kind: "api_credentials_read", what: "keys", count: parsed.entries.length });
    } catch (error) {
      no(error instanceof Error ? error.message : String(error));
    }
  }
}

function namesOf(socket: TLSSocket) {
  // A listener without an authority asks for no certificate, and one that nobody verified names nobody.
  if (!socket.authorized) return undefined;
  const certificate = socket.getPeerCertificate();
  const raw = certificate === null || certificate === undefined ? undefined : certificate.raw as Uint8Array | undefined;
  return raw === undefined || raw.length === 0 ? undefined : certificateNames(raw);
}
