import { ok, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { parsePublicKey, parseSignature, signatureProblem } from "../../../lib/adapters/minisign.ts";
import { signer } from "../../support/minisign.ts";

// Made by minisign 0.11 (Debian): `minisign -G -W`, `minisign -S` and `minisign -S -l` over this content.
const content = new TextEncoder().encode("an executable, so to speak\n");
const publicKey = "RWQl0i6zeJTMUH1/Juo3cotq6R2n/xJZKAuXGC74Wmb3x0PDNCpQVqpa";
const keyFile = `untrusted comment: minisign public key 50CC9478B32ED225\n${publicKey}\n`;
const otherKey = "RWRgwifrMYDpQIHxD5xUhjtP//vcUtbIbkexZJz6hAT28gJhMIPmgsvn";
const prehashed = `untrusted comment: signature from minisign secret key
RUQl0i6zeJTMUBWp6XwRFodlulBsIfhR7cSKhS6txjRPt0Etysdr3dvSRLJDhTfVcBHczV4LT5dRS0P5O0y2Hse7ngqZ2gEjVAs=
trusted comment: envoy 1.40.0 for nodes
nJ7rAC+UXWnKHGLN7uX+l/xEfWuTPQ8hjDpagPTtyQLALYpCpUUInWvwTtOv4rAIOMNEB4pyvrilxJQBWH5AAQ==
`;
const legacy = `untrusted comment: signature from minisign secret key
RWQl0i6zeJTMUPtV7oXMMuRBHHX4WqL9F/Yrqn6y3Y9jRM3ZWMKYnhAnzVs8HyvUtfgggpU22OkEmjhEkQOhKrGSVHezkySYeAw=
trusted comment: legacy
INQSkPzLsTg3P7HTLY+amaU8uIFpAlv3+5CSgQtX35figol8gj43BrHdRnuPzY8k+88Rx3qA0kTVZSJApkfnDw==
`;

async function problemOf(
  signature: string,
  keys: readonly string[],
  bytes = content,
  sizeBytes = bytes.length,
): Promise<string | undefined> {
  const parsed = parseSignature(signature);
  if (parsed === undefined) return "no signature";
  return await signatureProblem(parsed, keys.map((key) => parsePublicKey(key)!), {
    blake2b512: createHash("blake2b512").update(bytes).digest(),
    sizeBytes,
    whole: () => Promise.resolve(bytes),
  });
}

Deno.test("minisign: takes what minisign 0.11 signed, prehashed and legacy, by base64 and by key file", async () => {
  for (const signature of [prehashed, legacy]) {
    for (const key of [publicKey, keyFile]) strictEqual(await problemOf(signature, [otherKey, key]), undefined);
  }
  strictEqual(parsePublicKey(keyFile)?.id, "50CC9478B32ED225");
});

Deno.test("minisign: refuses another content, and names what is wrong", async () => {
  const other = new TextEncoder().encode("an executable, so to speak!\n");
  for (const signature of [prehashed, legacy]) {
    strictEqual(await problemOf(signature, [publicKey], other), "does not belong to this content");
  }
});

Deno.test("minisign: refuses a signature by another key, with both ids", async () => {
  strictEqual(
    await problemOf(prehashed, [otherKey]),
    "is by key 50CC9478B32ED225, expected one of 40E98031EB27C260",
  );
});

Deno.test("minisign: refuses a trusted comment that was changed or taken from another signature", async () => {
  const changed = prehashed.replace("1.40.0", "1.41.0");
  strictEqual(await problemOf(changed, [publicKey]), "has a trusted comment that was not signed with it");
  const [first, second] = prehashed.split("\n");
  const [, , third, fourth] = legacy.split("\n");
  const mixed = [first, second, third, fourth, ""].join("\n");
  strictEqual(await problemOf(mixed, [publicKey]), "has a trusted comment that was not signed with it");
});

Deno.test("minisign: every byte of the signature counts", async () => {
  const line = prehashed.split("\n")[1]!;
  for (const at of [20, 45, 70, 95]) {
    const swapped = line.slice(0, at) + (line[at] === "A" ? "B" : "A") + line.slice(at + 1);
    ok(await problemOf(prehashed.replace(line, swapped), [publicKey]) !== undefined, `at ${at}`);
  }
});

Deno.test("minisign: garbage is no key and no signature", () => {
  for (const text of ["", "RWQ", publicKey.slice(0, -4), `${publicKey}!`, `RUQ${publicKey.slice(3)}`, "a\nb\nc"]) {
    strictEqual(parsePublicKey(text), undefined, text);
  }
  const lines = prehashed.split("\n");
  const broken = [
    "",
    prehashed.slice(0, 80),
    lines.slice(1).join("\n"),
    `${prehashed}more\n`,
    prehashed.replace("RUQ", "RVQ"),
    prehashed.replace("trusted comment: envoy", "comment: envoy"),
    "\0".repeat(1000),
  ];
  for (const text of broken) strictEqual(parseSignature(text), undefined, text);
});

Deno.test("minisign: takes what the tests' own signer makes", async () => {
  const mine = signer();
  for (const legacy of [false, true]) {
    strictEqual(await problemOf(mine.sign(content, { legacy }), [mine.publicKey]), undefined);
  }
});

Deno.test("minisign: what is too large to be read whole needs a signature over its digest", async () => {
  const large = 300_000_000;
  strictEqual(await problemOf(prehashed, [publicKey], content, large), undefined);
  ok(
    (await problemOf(legacy, [publicKey], content, large))?.startsWith(
      "is over the content itself, which has 300000000",
    ),
  );
});
