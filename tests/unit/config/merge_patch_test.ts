import assert from "node:assert/strict";
import { mergePatch } from "../../../lib/config/merge_patch.ts";

Deno.test("mergePatch does what the examples of RFC 7396 say", () => {
  const cases: readonly (readonly [unknown, unknown, unknown])[] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [["a", "b"], ["c", "d"], ["c", "d"]],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, result] of cases) assert.deepEqual(mergePatch(target, patch), result);
});

Deno.test("mergePatch changes neither of its arguments, and no prototype", () => {
  const target = { a: { b: 1 } };
  const merged = mergePatch(target, JSON.parse('{"a":{"c":2},"__proto__":{"polluted":true}}')) as Record<
    string,
    unknown
  >;
  assert.deepEqual(target, { a: { b: 1 } });
  assert.deepEqual(merged.a, { b: 1, c: 2 });
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.equal(merged.polluted, undefined);
});
