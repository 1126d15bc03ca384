import assert from "node:assert/strict";
import { SocketLink } from "../../../lib/api/socket_link.ts";
import { ownerOf, socketPlace } from "../../../lib/api/socket_path.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { pause, until } from "../../support/until.ts";

/** Some looks at the link. */
const SOME_LOOKS_MS = 200;

/** A supervisor, as far as the link sees it: a socket on which somebody accepts. */
function supervisor(dir: TempDir, pid: number, turn?: Promise<void>) {
  const place = socketPlace(dir.at("api.sock"));
  const socket = dir.at(`api-${pid}.sock`);
  const listener = Deno.listen({ transport: "unix", path: socket });
  const asked = { times: 0 };
  void (async () => {
    for await (const connection of listener) {
      asked.times++;
      connection.close();
    }
  })();
  const told: ShellFact[] = [];
  const tell = (fact: ShellFact) => void told.push(fact);
  const link = new SocketLink({ place, socket, tell, lookMs: 20, ...(turn === undefined ? {} : { turn }) });
  let isOver = false;
  return {
    told,
    asked,
    begin: () => link.begin(),
    /** As a kill: the socket stays, and nobody accepts on it. */
    end() {
      if (isOver) return;
      isOver = true;
      link.close();
      listener.close();
    },
    [Symbol.dispose]() {
      this.end();
    },
  };
}

function held(dir: TempDir, by: number, socket: number): ShellFact {
  return {
    kind: "api_link_held",
    path: dir.at("api.sock"),
    holder: dir.at(`api-${by}.sock`),
    pid: by,
    socket: dir.at(`api-${socket}.sock`),
  };
}

const leadsTo = (dir: TempDir) => Deno.readLinkSync(dir.at("api.sock"));

Deno.test("link stays with the living holder and goes over once that accepts no more", async () => {
  await using dir = tempDir();
  using first = supervisor(dir, 1);
  using second = supervisor(dir, 2);
  const listening = { kind: "api_listening", path: dir.at("api.sock") } as const;
  assert.equal(await first.begin(), undefined);
  assert.equal(await second.begin(), undefined);
  await pause(SOME_LOOKS_MS);
  assert.equal(leadsTo(dir), "api-1.sock");
  assert.deepEqual([first.told, second.told], [[listening], [held(dir, 1, 2)]]);
  assert.equal(second.asked.times, 0, "nobody asks who does not hold it");
  first.end();
  await until("the second has it", () => leadsTo(dir) === "api-2.sock");
  assert.deepEqual(second.told, [held(dir, 1, 2), listening]);
});

Deno.test("link that leads nowhere, in a circle or to a file, or that somebody removes, is taken", async () => {
  await using dir = tempDir();
  dir.write("file", "");
  using one = supervisor(dir, 1);
  Deno.symlinkSync("gone.sock", dir.at("api.sock"));
  assert.equal(await one.begin(), undefined);
  assert.equal(leadsTo(dir), "api-1.sock");
  for (const target of ["api.sock", "file", "file/api.sock", dir.at("gone.sock"), undefined]) {
    Deno.removeSync(dir.at("api.sock"));
    if (target !== undefined) Deno.symlinkSync(target, dir.at("api.sock"));
    await until(`it is back from ${target}`, () => leadsTo(dir) === "api-1.sock");
  }
});

Deno.test("link is taken from a living holder when the turn comes, not before; who lost it does not fight, and has it back", async () => {
  await using dir = tempDir();
  const [firstTurn, secondTurn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  using first = supervisor(dir, 1, firstTurn.promise);
  using second = supervisor(dir, 2, secondTurn.promise);
  await first.begin();
  firstTurn.resolve();
  await pause(SOME_LOOKS_MS);
  await second.begin();
  await pause(SOME_LOOKS_MS);
  assert.equal(leadsTo(dir), "api-1.sock");
  secondTurn.resolve();
  await until("the second has it", () => leadsTo(dir) === "api-2.sock");
  await pause(SOME_LOOKS_MS);
  assert.equal(leadsTo(dir), "api-2.sock");
  assert.deepEqual(first.told.at(-1), held(dir, 2, 1));
  second.end();
  await until("the first has it back", () => leadsTo(dir) === "api-1.sock");
});

Deno.test("link that became a file is left alone, which is told once", async () => {
  await using dir = tempDir();
  using one = supervisor(dir, 1);
  await one.begin();
  Deno.removeSync(dir.at("api.sock"));
  dir.write("api.sock", "precious");
  await until("it is told", () => one.told.some(({ kind }) => kind === "api_failed"));
  await pause(SOME_LOOKS_MS);
  assert.equal(one.told.length, 2);
  assert.equal(Deno.readTextFileSync(dir.at("api.sock")), "precious");
});

Deno.test("a closed one leaves the link as it is", async () => {
  await using dir = tempDir();
  using first = supervisor(dir, 1);
  await first.begin();
  first.end();
  Deno.removeSync(dir.at("api.sock"));
  await pause(SOME_LOOKS_MS);
  assert.throws(() => leadsTo(dir), Deno.errors.NotFound);
});

Deno.test("the name of a socket says whose it is", () => {
  const place = socketPlace("/run/api.sock");
  assert.equal(ownerOf(place, "/run/api-42.sock"), 42);
  assert.equal(ownerOf(place, "/run/api-42-3.sock"), 42);
  for (const other of ["/run/other-42.sock", "/run/api-x.sock", "/elsewhere/api-42.sock", "/run/api.sock"]) {
    assert.equal(ownerOf(place, other), undefined, other);
  }
});
