import assert from "node:assert/strict";
import { type Answer, connectTo } from "../../../lib/api/client.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { within } from "../../support/until.ts";
import { FakeControl, handoffFacts } from "./fake_control.ts";
import { serve } from "./serving.ts";

function why(answer: Answer<unknown>): string {
  return answer.kind === "absent" ? answer.why : assert.fail(JSON.stringify(answer));
}

/** Answers every connection with the same bytes, or never. */
function stub(dir: TempDir, answer: string | undefined) {
  const path = dir.at("stub.sock");
  const listener = Deno.listen({ transport: "unix", path });
  const held: Deno.Conn[] = [];
  const done = (async () => {
    for await (const connection of listener) {
      held.push(connection);
      if (answer === undefined) continue;
      await connection.read(new Uint8Array(1_000));
      await connection.write(new TextEncoder().encode(answer));
      connection.close();
    }
  })();
  return {
    path,
    async [Symbol.asyncDispose]() {
      listener.close();
      await done.catch(() => {});
      for (const connection of held) {
        try {
          connection.close();
        } catch { /* Answered. */ }
      }
    },
  };
}

Deno.test("client asks for status and restart", async () => {
  const control = new FakeControl();
  control.services = { "a b/c": control.status().services.edge! };
  control.onTrigger = ({ request }) => {
    control.happen(handoffFacts(request).accepted, "a b/c");
    control.happen(handoffFacts(request).live, "a b/c");
  };
  await using api = await serve({}, control);
  const client = connectTo(api.path);
  const config = api.scene.configuration.summary();
  assert.deepEqual(await client.status(), { kind: "ok", value: { ...control.status(), config } });
  const accepted = await client.restart("a b/c", { wait: "accepted", force: true });
  assert.deepEqual(accepted, { kind: "ok", value: { service: "a b/c", request: "r1", outcome: "accepted" } });
  assert.equal(control.asked[0]?.force, true);
  const live = await client.restart("a b/c", { wait: "live", force: false });
  assert.equal(live.kind === "ok" && live.value.outcome, "live");
});

Deno.test("client gives problems as they came", async () => {
  await using api = await serve();
  const answer = await connectTo(api.path).restart("nobody", { wait: "accepted", force: false });
  assert.equal(answer.kind === "problem" && answer.problem.status, 404);
});

Deno.test("client says that there is no supervisor, by what is at the path", async () => {
  await using dir = tempDir();
  assert.equal(why(await connectTo(dir.at("a.sock")).status()), `no supervisor: ${dir.at("a.sock")} does not exist`);
  Deno.symlinkSync("api-1.sock", dir.at("api.sock"));
  const ended = (path: string) => `no supervisor: nobody listens on ${path}, its supervisor has ended`;
  assert.equal(why(await connectTo(dir.at("api.sock")).status()), ended(dir.at("api.sock")));
  const listener = Deno.listen({ transport: "unix", path: dir.at("bound") });
  Deno.renameSync(dir.at("bound"), dir.at("dead.sock"));
  listener.close();
  assert.equal(why(await connectTo(dir.at("dead.sock")).status()), ended(dir.at("dead.sock")));
  assert.match(why(await connectTo(dir.at("a.sock")).events()), /does not exist/);
});

Deno.test("client does not wait for ever for a supervisor that hangs", async () => {
  await using dir = tempDir();
  await using silent = stub(dir, undefined);
  const client = connectTo(silent.path, 30);
  assert.match(why(await within("an answer", client.status())), /has not answered within 0.03 s/);
  assert.match(why(await within("an answer", client.events())), /has not answered within 0.03 s/);
  const restart = client.restart("edge", { wait: "accepted", force: false });
  assert.match(why(await within("an answer", restart)), /has not answered/);
});

Deno.test("client takes no answer that is no HTTP, no JSON or broken off", async () => {
  for (
    const text of ["", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{"]
  ) {
    await using dir = tempDir();
    await using broken = stub(dir, text);
    assert.match(why(await connectTo(broken.path).status()), /broke/, JSON.stringify(text));
  }
});
