import assert from "node:assert/strict";
import { envoyVersion, oneLine, plural, shortDigest, showExit, showMs } from "../../../lib/observe/words.ts";

Deno.test("showMs keeps what a reader needs of a time", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, "0 ms"],
    [312.4, "312 ms"],
    [1_000, "1 s"],
    [4_510, "4.5 s"],
    [59_000, "59 s"],
    [90_400, "1m30s"],
    [7_500_000, "2h5m"],
    [180_000_000, "2d2h"],
  ];
  for (const [ms, text] of cases) assert.equal(showMs(ms), text);
});

Deno.test("showMs never shows 60 seconds or 1000 milliseconds", () => {
  assert.equal(showMs(999.7), "1 s");
  assert.equal(showMs(59_999), "1m0s");
  assert.equal(showMs(3_599_900), "1h0m");
});

Deno.test("words for versions, digests, exits and counts", () => {
  assert.equal(envoyVersion("abc/1.40.0/Clean/RELEASE/BoringSSL"), "1.40.0");
  assert.equal(envoyVersion("1.40.0"), "1.40.0");
  assert.equal(shortDigest("0123456789abcdef"), "0123456789ab");
  assert.equal(showExit({ code: 1 }), "exit code 1");
  assert.equal(showExit({ code: 139, signal: "SIGSEGV" }), "killed by SIGSEGV");
  assert.equal(showExit({ code: "unknown" }), "exit status unknown");
  assert.equal(plural(1, "handoff"), "1 handoff");
  assert.equal(plural(0, "handoff"), "0 handoffs");
});

Deno.test("oneLine leaves nothing that a terminal obeys", () => {
  assert.equal(oneLine("a\r\nb\x1b[31mc\u2028d\u009be"), "a b [31mc d e");
});
