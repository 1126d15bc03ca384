// Owns: certificates for a test, made by openssl: an authority, a server, clients. Must not: outlive the directory they are in.

import type { TempDir } from "./tempdir.ts";

export interface CertificateRequest {
  /** Default: its name. */
  readonly subject?: string;
  /** As openssl has them: `DNS:localhost,URI:spiffe://x/y`. */
  readonly alternatives?: string;
  /** Default: the authority `ca`. */
  readonly by?: string;
}

export interface Certificate {
  readonly certPath: string;
  readonly keyPath: string;
}

/** Undefined where there is no openssl: the reason to skip. */
export const hasOpenssl: boolean = (() => {
  try {
    return new Deno.Command("openssl", { args: ["version"], stdout: "null", stderr: "null" }).outputSync().success;
  } catch {
    return false;
  }
})();

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];

export function makeAuthority(dir: TempDir, name = "ca"): Certificate {
  const paths = pathsOf(dir, name);
  openssl("req", "-x509", ...newKey, "-keyout", paths.keyPath, "-out", paths.certPath, "-subj", `/CN=${name}`);
  return paths;
}

export function makeCertificate(dir: TempDir, name: string, request: CertificateRequest = {}): Certificate {
  const { subject = `/CN=${name}`, alternatives, by = "ca" } = request;
  const paths = pathsOf(dir, name);
  const authority = pathsOf(dir, by);
  openssl(
    "req",
    "-x509",
    "-utf8",
    ...newKey,
    "-keyout",
    paths.keyPath,
    "-out",
    paths.certPath,
    "-subj",
    subject,
    ...[
      ["-CA", authority.certPath, "-CAkey", authority.keyPath],
      ["-addext", "basicConstraints=critical,CA:FALSE"],
      ...(alternatives === undefined ? [] : [["-addext", `subjectAltName=${alternatives}`]]),
    ].flat(),
  );
  return paths;
}

function pathsOf(dir: TempDir, name: string): Certificate {
  return { certPath: dir.at(`${name}.crt`), keyPath: dir.at(`${name}.key`) };
}

function openssl(...args: string[]): void {
  const { success, stderr } = new Deno.Command("openssl", { args, stdout: "null", stderr: "piped" }).outputSync();
  if (!success) throw new Error(`openssl ${args[0]}: ${new TextDecoder().decode(stderr)}`);
}
