import assert from "node:assert/strict";
import { refusal } from "../../../lib/core/refusal.ts";
import { adminText, shortVersion, view } from "../../../lib/core/view.ts";
import { at, epoch, predecessor, serving } from "./states.ts";

Deno.test("view + an epoch that serves, with all that is known of it", () => {
  const { phase, ready, note, epochs } = view(serving(), 11_500);
  assert.deepEqual({ phase, ready, note }, { phase: "serving", ready: true, note: undefined });
  assert.deepEqual(epochs, [{
    epoch: 0,
    attempt: 2,
    role: "newest",
    pid: 1002,
    version: "1.40.0",
    liveForMs: 10_000,
    bootstrapDigest: "b0",
    binaryDigest: "x0",
    admin: "127.0.0.1:9901",
    ageMs: 10_500,
  }]);
});

Deno.test("view + newest first, then who drains, then who was ended by a third generation", () => {
  const state = { ...serving({ epoch: epoch(4, 2), predecessor: predecessor(3, 1) }), leaving: [predecessor(2, 0)] };
  const { step, epochs } = view(state, 2_000);
  assert.equal(step, "predecessor_drains");
  assert.deepEqual(epochs.map(({ epoch, role }) => [epoch, role]), [
    [2, "newest"],
    [1, "predecessor"],
    [0, "predecessor"],
  ]);
});

Deno.test("view + not ready, and why: hung", () => {
  const state = serving({ health: { kind: "hung", sinceMs: 1_000, by: "admin", lost: undefined } });
  const { ready, note } = view(state, 2_000);
  assert.deepEqual({ ready, note }, { ready: false, note: "newest epoch does not answer" });
});

Deno.test("view + ready, and what is odd: its admin was taken", () => {
  const state = serving({ health: { kind: "admin_lost", sinceMs: 1_000, recoveries: 0, unwellSinceMs: undefined } });
  const { ready, note } = view(state, 2_000);
  assert.equal(ready, true);
  assert.match(note ?? "", /took the admin/);
});

Deno.test("view + not ready without a marker that can be written", () => {
  const { ready, note } = view({ ...serving(), markerProblem: "no space left on device" }, 2_000);
  assert.deepEqual({ ready, note }, { ready: false, note: "ready marker: no space left on device" });
});

Deno.test("view + what was refused, newest first, with its age", () => {
  const entry = { refusal: refusal("child_died", "why"), bootstrapDigest: "b1", binaryDigest: "x0", tries: 1 };
  const { refused } = view({ ...serving(), refused: [{ ...entry, atMs: 1_500 }] }, 2_000);
  assert.deepEqual(refused, [
    { refusal: refusal("child_died", "why"), bootstrapDigest: "b1", binaryDigest: "x0", agoMs: 500 },
  ]);
});

Deno.test("view + what is watched: digest, problem, or not read yet", () => {
  const watch = { bootstrap: "events", binary: "polling" } as const;
  const seen = { bootstrap: { kind: "unusable", problem: "it is a directory" } } as const;
  assert.deepEqual(view({ ...serving(), watch, seen }, 2_000).watch, [
    { subject: "bootstrap", mode: "events", content: "it is a directory" },
    { subject: "binary", mode: "polling", content: "not read yet" },
  ]);
});

Deno.test("view + the end, with its code and its reason", () => {
  const { phase, epochs, exitCode, note } = view(at({ kind: "ended", exitCode: 1, reason: "epoch 0 died" }), 2_000);
  assert.deepEqual({ phase, epochs, exitCode, note }, {
    phase: "ended",
    epochs: [],
    exitCode: 1,
    note: "epoch 0 died",
  });
});

Deno.test("adminText + IPv4, IPv6, unix socket", () => {
  assert.equal(adminText({ kind: "tcp", host: "127.0.0.1", port: 1 }), "127.0.0.1:1");
  assert.equal(adminText({ kind: "tcp", host: "::1", port: 1 }), "[::1]:1");
  assert.equal(adminText({ kind: "unix", path: "/run/admin.sock" }), "unix:/run/admin.sock");
});

Deno.test("shortVersion + the number alone, or all of what is no Envoy version", () => {
  assert.equal(shortVersion("abc/1.40.0/Clean/RELEASE/BoringSSL"), "1.40.0");
  assert.equal(shortVersion("dev"), "dev");
});
