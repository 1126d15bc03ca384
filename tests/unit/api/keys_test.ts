import assert from "node:assert/strict";
import { createKey, findKey, formatEntry, parseKeys } from "../../../lib/api/keys.ts";

function entriesOf(text: string) {
  const parsed = parseKeys(text);
  return parsed.kind === "parsed" ? parsed.entries : assert.fail(parsed.problem);
}

Deno.test("a key has 256 random bits, and its entry has its hash alone", () => {
  const [one, other] = [createKey("ci", "operate", "deploys"), createKey("ci", "operate", "deploys")];
  assert.match(one.key, /^epochd_ci_[A-Za-z0-9_-]{43}$/);
  assert.notEqual(one.key, other.key);
  const line = formatEntry(one.entry);
  assert.match(line, /^ci operate sha256:[0-9a-f]{64} deploys$/);
  assert.ok(!line.includes(one.key.slice(10)));
  assert.deepEqual(entriesOf(`# keys\n\n${line}\n`), [one.entry]);
});

Deno.test("findKey knows a key by all of it, and nobody by less", () => {
  const { key, entry } = createKey("ci-2", "read", "");
  const entries = [createKey("other", "admin", "").entry, entry];
  assert.equal(findKey(entries, key), entry);
  const wrong = key.slice(0, -1) + (key.endsWith("A") ? "B" : "A");
  for (const text of ["", key.slice(0, -1), `${key}x`, wrong, key.replace("ci-2", "other"), entry.hash, "epochd_x_"]) {
    assert.equal(findKey(entries, text), undefined, text);
  }
  assert.equal(findKey([], key), undefined);
});

Deno.test("parseKeys names the line that is wrong, and takes nothing then", () => {
  const hash = `sha256:${"0".repeat(64)}`;
  const cases: readonly (readonly [string, RegExp])[] = [
    [`a read ${hash}\nb write ${hash}`, /^line 2: write: expected the role read, operate, admin$/],
    [`a read ${hash}\na admin ${hash}`, /^line 2: a stands there twice$/],
    [`A read ${hash}`, /^line 1: A: expected an id of/],
    ["a read sha256:abc", /^line 1: expected `ID ROLE sha256:HASH`$/],
    ["a read plain-secret", /^line 1: expected/],
  ];
  for (const [text, problem] of cases) {
    const parsed = parseKeys(text);
    assert.ok(parsed.kind === "refused" && problem.test(parsed.problem), JSON.stringify(parsed));
  }
});
