// Owns: the names in a client certificate, read from its DER. Must not: verify it (TLS has).
// Not from the texts that node gives: an alternative name with a comma in it would read there as two.

import type { CertificateNames } from "../config/client_role.ts";

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

const attributes: Readonly<Record<string, string>> = { "55 04 03": "CN", "55 04 0a": "O", "55 04 0b": "OU" };
const alternativeNames = "55 1d 11";
/** Of GeneralName: rfc822Name, dNSName, uniformResourceIdentifier. */
const kinds: Readonly<Record<number, string>> = { 0x81: "EMAIL", 0x82: "DNS", 0x86: "URI" };
const extensionsTag = 0xa3;
const versionTag = 0xa0;

/** Undefined where it is none that can be read. */
export function certificateNames(der: Uint8Array): CertificateNames | undefined {
  try {
    const body = children(children(only(der))[0]!);
    // version (may be missing), serial, signature, issuer, validity, subject
    const at = body[0]?.tag === versionTag ? 5 : 4;
    const extensions = body.find(({ tag }) => tag === extensionsTag);
    return {
      subject: subjectOf(body[at]!),
      alternatives: extensions === undefined ? [] : alternativesOf(children(only(extensions.content))),
    };
  } catch {
    return undefined;
  }
}

/** For people: `CN=alice,O=ops`, or its first alternative name. */
export function nameOf({ subject, alternatives }: CertificateNames): string {
  return subject.length > 0 ? subject.join(",") : alternatives[0] ?? "without a name";
}

function subjectOf(name: Element): readonly string[] {
  return children(name).flatMap((set) =>
    children(set).flatMap((pair) => {
      const [type, value] = children(pair);
      const attribute = attributes[hex(type!.content)];
      return attribute === undefined ? [] : [`${attribute}=${textOf(value!)}`];
    })
  );
}

function alternativesOf(extensions: readonly Element[]): readonly string[] {
  return extensions.flatMap((extension) => {
    const parts = children(extension);
    if (hex(parts[0]!.content) !== alternativeNames) return [];
    return children(only(parts.at(-1)!.content)).flatMap(({ tag, content }) => {
      const kind = kinds[tag];
      return kind === undefined ? [] : [`${kind}:${new TextDecoder("latin1").decode(content)}`];
    });
  });
}

function textOf({ tag, content }: Element): string {
  const bmpString = 0x1e;
  return new TextDecoder(tag === bmpString ? "utf-16be" : "utf-8").decode(content);
}

function only(bytes: Uint8Array): Element {
  return elements(bytes)[0]!;
}

function children(element: Element): readonly Element[] {
  const constructed = 0x20;
  if ((element.tag & constructed) === 0) throw new Error("this element holds no others");
  return elements(element.content);
}

function elements(bytes: Uint8Array): readonly Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at++]!;
    let length = bytes[at++]!;
    if (length > 0x84) throw new Error("longer than any certificate");
    if (length >= 0x80) {
      const octets = length - 0x80;
      length = 0;
      for (let i = 0; i < octets; i++) length = length * 256 + bytes[at++]!;
    }
    if (!(at + length <= bytes.length)) throw new Error("cut short");
    found.push({ tag, content: bytes.subarray(at, at + length) });
    at += length;
  }
  return found;
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
}
