import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import { catalogue } from "../../../lib/observe/catalogue.ts";
import { describe } from "../../../lib/observe/describe.ts";
import { shellCatalogue } from "../../../lib/observe/shell_catalogue.ts";
import { version } from "../../../lib/observe/version.ts";

Deno.test("catalogue names every kind as the fact does, in one list without doubles", () => {
  const kinds = [...Object.keys(catalogue), ...Object.keys(shellCatalogue)];
  assert.equal(new Set(kinds).size, kinds.length);
  for (const kind of kinds) assert.match(kind, /^[a-z]+(_[a-z]+)*$/);
});

const refusal = { name: "bootstrap_invalid", detail: "envoy.yaml: no such field" } as const;

Deno.test("describe flattens a refusal to its name and detail", () => {
  const fact: Fact = { kind: "handoff_failed", handoff: 2, from: 1, to: 2, requests: ["r1"], refusal, tookMs: 80 };
  assert.deepEqual(describe(fact), {
    level: "error",
    message: "handoff 2 to epoch 2 failed: envoy.yaml: no such field",
    fields: {
      handoff: 2,
      from: 1,
      to: 2,
      requests: ["r1"],
      refusal: "bootstrap_invalid",
      detail: "envoy.yaml: no such field",
      tookMs: 80,
    },
  });
});

Deno.test("describe flattens an exit to code and signal", () => {
  const { fields } = describe({
    kind: "newest_died",
    epoch: 3,
    exit: { code: 137, signal: "SIGKILL" },
    answer: "exit",
  });
  assert.deepEqual(fields, { epoch: 3, exitCode: 137, exitSignal: "SIGKILL", answer: "exit" });
});

Deno.test("describe rounds times to a tenth of a millisecond", () => {
  assert.deepEqual(describe({ kind: "epoch_progress", epoch: 1, state: "INITIALIZING", tookMs: 17.7783309 }).fields, {
    epoch: 1,
    state: "INITIALIZING",
    tookMs: 17.8,
  });
});

Deno.test("describe gives a fact the level that its values deserve", () => {
  const exited = (role: "child" | "newest" | "predecessor", code: number) =>
    describe({ kind: "epoch_exited", epoch: 1, attempt: 1, exit: { code }, role, livedMs: 5 }).level;
  assert.equal(exited("newest", 1), "error");
  assert.equal(exited("newest", 0), "info");
  assert.equal(exited("child", 0), "warn");
  assert.equal(exited("predecessor", 0), "info");
  const ending = (signal: "SIGTERM" | "SIGKILL") =>
    describe({ kind: "epoch_ending", epoch: 1, signal, role: "newest" }).level;
  assert.deepEqual([ending("SIGTERM"), ending("SIGKILL")], ["info", "warn"]);
  assert.equal(describe({ kind: "ended", exitCode: 0, reason: "SIGTERM" }).level, "info");
  assert.equal(describe({ kind: "ended", exitCode: 1, reason: "died" }).level, "error");
  assert.equal(describe({ kind: "supervisor_ended", exitCode: 3 }).level, "error");
});

Deno.test("describe says what happened in words that end without a full stop", () => {
  const facts: readonly Fact[] = [
    { kind: "epoch_live", epoch: 1, pid: 42, version: "abc/1.40.0/Clean/RELEASE/BoringSSL", tookMs: 312.4 },
    { kind: "handoff_live", handoff: 1, from: 0, to: 1, requests: [], tookMs: 4_200 },
    { kind: "drain_ended", epoch: 1, connections: undefined, why: "time_over" },
    { kind: "drain_ended", epoch: 1, connections: 1, why: "quiet" },
    { kind: "content_changed", subject: "binary", digest: "0123456789abcdef" },
  ];
  assert.deepEqual(facts.map((fact) => describe(fact).message), [
    "epoch 1 is LIVE after 312 ms (pid 42, Envoy 1.40.0)",
    "handoff 1: epoch 1 serves after 4.2 s, epoch 0 drains",
    "drain of epoch 1 ended (time_over) with an unknown number of connections",
    "drain of epoch 1 ended (quiet) with 1 connection",
    "Envoy's executable changed to 0123456789ab",
  ]);
});

Deno.test("version is the one of deno.json", () => {
  const text = Deno.readTextFileSync(new URL("../../../deno.json", import.meta.url));
  assert.equal((JSON.parse(text) as { version: string }).version, version);
});
