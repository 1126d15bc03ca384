import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { certificateNames } from "../../../lib/api/certificate.ts";
import { hasOpenssl, makeAuthority, makeCertificate } from "../../support/certificates.ts";
import { tempDir } from "../../support/tempdir.ts";

function derOf(path: string): Uint8Array {
  const [, base64] = /-----BEGIN CERTIFICATE-----([^-]+)-----/.exec(Deno.readTextFileSync(path)) ?? [];
  return new Uint8Array(Buffer.from(base64!, "base64"));
}

Deno.test({
  name: "certificateNames reads subject and alternative names from DER, and a certificate without the latter",
  ignore: !hasOpenssl,
  fn: async () => {
    await using dir = tempDir();
    makeAuthority(dir);
    const { certPath } = makeCertificate(dir, "alice", {
      subject: "/O=ops/OU=edge team/CN=älice",
      alternatives: "DNS:a.example,URI:spiffe://x/ci,email:a@example.org,IP:10.0.0.1",
    });
    assert.deepEqual(certificateNames(derOf(certPath)), {
      subject: ["O=ops", "OU=edge team", "CN=älice"],
      alternatives: ["DNS:a.example", "URI:spiffe://x/ci", "EMAIL:a@example.org"],
    });
    assert.deepEqual(certificateNames(derOf(makeCertificate(dir, "bare").certPath)), {
      subject: ["CN=bare"],
      alternatives: [],
    });
  },
});

Deno.test({
  name: "certificateNames answers nothing for what is no certificate, however it is cut or changed",
  ignore: !hasOpenssl,
  fn: async () => {
    await using dir = tempDir();
    makeAuthority(dir);
    const der = derOf(makeCertificate(dir, "a", { alternatives: "DNS:a" }).certPath);
    for (let length = 0; length < der.length; length++) certificateNames(der.subarray(0, length));
    for (let at = 0; at < der.length; at++) {
      const changed = der.slice();
      changed[at] = 255 - changed[at]!;
      certificateNames(changed);
    }
    assert.equal(certificateNames(new Uint8Array(0)), undefined);
    assert.equal(certificateNames(der.subarray(0, der.length - 1)), undefined);
  },
});
