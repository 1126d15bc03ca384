import assert from "node:assert/strict";
import { Observatory } from "../../../lib/observe/observatory.ts";
import type { Census } from "../../../lib/observe/observed.ts";
import type { EpochStatus } from "../../../lib/core/status.ts";
import { FakeControl, handoffFacts, servingStatus } from "../api/fake_control.ts";
import { tempDir } from "../../support/tempdir.ts";

function epoch(role: EpochStatus["role"]): EpochStatus {
  return { epoch: 1, attempt: 1, role, bootstrapDigest: "b", binaryDigest: "c", admin: "127.0.0.1:1", ageMs: 1 };
}

function watching(
  control: FakeControl,
  directory: string,
  census: () => Promise<Census | undefined> = () => Promise.resolve(undefined),
) {
  return new Observatory({
    control,
    pid: 1,
    droppedLogLines: () => 0,
    stateDirOf: () => directory,
    census,
    problem: (problem) => assert.fail(problem),
  });
}

Deno.test("observatory + metrics count what happened before anybody asked, also what the ring no longer holds", async () => {
  await using dir = tempDir();
  const control = new FakeControl(1_000);
  const observatory = watching(control, dir.path);
  observatory.countRequest({ route: "/v1/status", method: "GET", code: 200 });
  for (let i = 0; i < 600; i++) {
    control.happen({ kind: "late_answer", of: "identity", attempt: i });
    if (i === 550) await new Promise((resolve) => setTimeout(resolve, 200));
  }
  for (let i = 0; i < 900; i++) control.happen({ kind: "late_answer", of: "identity", attempt: i });
  const { text } = await observatory.metrics();
  assert.match(text, /^epochd_late_answers_total\{service="edge"\} 1500$/m);
  assert.match(text, /^epochd_api_requests_total\{route="\/v1\/status",method="GET",code="200"\} 1$/m);
  await observatory.close();
});

Deno.test("observatory + connections are asked at most once a second, and a parent's only while it drains", async () => {
  await using dir = tempDir();
  const control = new FakeControl();
  let asked = 0;
  const observatory = watching(control, dir.path, () => {
    asked++;
    return Promise.resolve({ active: 5, draining: 2 });
  });
  control.services = { edge: { ...servingStatus, epochs: [epoch("newest"), epoch("predecessor")] } };
  const answers = await Promise.all([1, 2, 3].map(() => observatory.connections()));
  assert.deepEqual(answers[0], { edge: { active: 5, draining: 2 } });
  assert.equal(asked, 1);
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  control.services = { edge: { ...servingStatus, epochs: [epoch("newest")] } };
  assert.deepEqual(await observatory.connections(), { edge: { active: 5 } });
  assert.equal(asked, 2);
});

Deno.test("observatory + a handoff is in the history while it is under way and afterwards, with its client", async () => {
  await using dir = tempDir();
  const control = new FakeControl();
  const observatory = watching(control, dir.path);
  const facts = handoffFacts("r1");
  observatory.credit("r1", "unix socket");
  control.happen(facts.began);
  const [open] = await observatory.handoffs(5);
  assert.deepEqual([open?.outcome, open?.who], ["under_way", "unix socket"]);
  control.happen(facts.live);
  control.happen(facts.done);
  await observatory.close();
  assert.deepEqual((await observatory.handoffs(5)).map(({ outcome }) => outcome), ["done"]);
});
