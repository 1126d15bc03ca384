import assert from "node:assert/strict";
import { statusCommand } from "../../../lib/cli/status_command.ts";
import { statusText } from "../../../lib/cli/status_text.ts";
import { painter } from "../../../lib/cli/terminal.ts";
import type { ServiceStatus } from "../../../lib/core/status.ts";
import type { SupervisorStatus } from "../../../lib/runtime/control.ts";
import { FakeControl } from "../api/fake_control.ts";
import { serve } from "../api/serving.ts";
import { FakeTerminal } from "./fake_terminal.ts";

const service: ServiceStatus = {
  phase: "serving",
  step: "draining",
  ready: true,
  note: "admin is silent\x1b[2J",
  handoffs: 1,
  epochs: [
    {
      epoch: 1,
      attempt: 2,
      role: "newest",
      pid: 4712,
      version: "abc/1.40.0/Clean/RELEASE/BoringSSL",
      bootstrapDigest: "b".repeat(64),
      binaryDigest: "c".repeat(64),
      admin: "127.0.0.1:9901",
      ageMs: 2_500,
    },
    {
      epoch: 0,
      attempt: 1,
      role: "predecessor",
      bootstrapDigest: "a".repeat(64),
      binaryDigest: "c".repeat(64),
      admin: "127.0.0.1:9901",
      ageMs: 3_700_000,
    },
  ],
  waiting: { sources: ["bootstrap", "api"], forMs: 1_200 },
  refused: [{
    refusal: { name: "bootstrap_invalid", detail: "no such\nfield" },
    bootstrapDigest: "d".repeat(64),
    agoMs: 60_000,
  }],
  watch: [{ subject: "binary", mode: "polling", content: "c".repeat(64) }, {
    subject: "bootstrap",
    mode: "events",
    content: "envoy.yaml is\nempty",
  }],
};

const status: SupervisorStatus = {
  version: "0.1.0",
  pid: 4711,
  startedAtMs: 1_000,
  stopping: false,
  services: { edge: service },
};

Deno.test("status text shows phase, readiness, aligned epochs, what waits, what was refused and the watches", () => {
  assert.equal(
    statusText(status, 91_000, painter(false)),
    `epochd 0.1.0, pid 4711, up 1m30s

edge: serving (draining), ready, 1 handoff
  admin is silent [2J
  EPOCH  ROLE         PID   ENVOY   AGE    BOOTSTRAP     EXECUTABLE    ADMIN
  1      newest       4712  1.40.0  2.5 s  bbbbbbbbbbbb  cccccccccccc  127.0.0.1:9901
  0      predecessor  -     -       1h1m   aaaaaaaaaaaa  cccccccccccc  127.0.0.1:9901
  waiting for 1.2 s: a trigger by bootstrap, api
  refused 1m0s ago: bootstrap_invalid (bootstrap dddddddddddd): no such field
  watching the executable by polling: cccccccccccc
  watching the bootstrap by events: envoy.yaml is empty
`,
  );
});

Deno.test("status text leaves out what was refused before the serving epoch was LIVE: that is history", () => {
  const [newest, ...others] = service.epochs;
  const textAfter = (liveForMs: number) => {
    const epochs = [{ ...newest!, liveForMs }, ...others];
    return statusText({ ...status, services: { edge: { ...service, epochs } } }, 91_000, painter(false));
  };
  assert.match(textAfter(61_000), /refused 1m0s ago/);
  assert.doesNotMatch(textAfter(59_000), /refused/);
});

Deno.test("status text is coloured only when asked, and says not ready and stopping", () => {
  const unready = { ...status, stopping: true, services: { edge: { ...service, ready: false } } };
  const plain = statusText(unready, 91_000, painter(false));
  assert.ok(!plain.includes("\x1b"));
  assert.match(plain, /up 1m30s, stopping\n/);
  assert.match(plain, /, not ready, /);
  assert.ok(statusText(unready, 91_000, painter(true)).includes("\x1b[31mnot ready\x1b[0m"));
});

Deno.test("status command prints for people, and with --json the whole status", async () => {
  const control = new FakeControl();
  control.services = { edge: service };
  await using api = await serve({}, control);
  const people = new FakeTerminal();
  assert.equal(await statusCommand({ socket: api.path, json: false }, people), 0);
  assert.match(people.stdout, /^epochd 0\.1\.0, pid 4711/);
  const programs = new FakeTerminal(true, true);
  assert.equal(await statusCommand({ socket: api.path, json: true }, programs), 0);
  const config = api.scene.configuration.summary();
  assert.deepEqual(JSON.parse(programs.stdout), { ...control.status(), config });
});

Deno.test("status command without a supervisor exits 1, says the path and what to do", async () => {
  const terminal = new FakeTerminal();
  assert.equal(await statusCommand({ socket: "/nowhere/api.sock", json: true }, terminal), 1);
  assert.equal(
    terminal.stderr,
    "error: no supervisor: /nowhere/api.sock does not exist; " +
      "is `epochd run` at work, with the same --api-socket or EPOCHD_API_SOCKET?\n",
  );
  assert.equal((JSON.parse(terminal.stdout) as { title: string }).title, "supervisor absent");
});
