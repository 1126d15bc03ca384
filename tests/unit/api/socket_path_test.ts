import assert from "node:assert/strict";
import {
  checkSocketPath,
  moveLink,
  ownSocket,
  prepareDirectory,
  removeStale,
  socketPlace,
} from "../../../lib/api/socket_path.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

function mode(path: string): number {
  return Deno.lstatSync(path).mode! & 0o7777;
}

/** What a supervisor leaves that was killed: a socket on which nobody listens. */
function deadSocket(dir: TempDir, name: string, ageMs: number): string {
  const listener = Deno.listen({ transport: "unix", path: dir.at("bound") });
  Deno.renameSync(dir.at("bound"), dir.at(name));
  listener.close();
  const born = new Date(Date.now() - ageMs);
  Deno.utimeSync(dir.at(name), born, born);
  return dir.at(name);
}

function names(dir: TempDir): readonly string[] {
  return [...Deno.readDirSync(dir.path)].map(({ name }) => name).sort();
}

Deno.test("socket path gives the directory, and names of the process beside the link", () => {
  const place = socketPlace("/run/epochd/api.sock");
  assert.deepEqual(place, { directory: "/run/epochd", link: "/run/epochd/api.sock", stem: "api" });
  assert.equal(ownSocket(place, 4711, 0), "/run/epochd/api-4711.sock");
  assert.equal(ownSocket(place, 4711, 2), "/run/epochd/api-4711-2.sock");
  assert.equal(socketPlace("api.sock").directory, ".");
  assert.equal(socketPlace("/api.sock").directory, "/");
});

Deno.test("socket path that leaves no room for the name of the process is refused, with how much is missing", () => {
  const room = 107 - "/api-4194304-9.sock".length;
  assert.equal(checkSocketPath(`/${"d".repeat(room - 1)}/api.sock`), undefined);
  assert.match(checkSocketPath(`/${"d".repeat(room)}/api.sock`) ?? "", /too long for a unix socket by 1 byte/);
  assert.match(checkSocketPath(`/${"ü".repeat(room / 2)}/api.sock`) ?? "", /too long/);
  assert.match(checkSocketPath("/run/epochd/") ?? "", /directory/);
});

Deno.test("socket directory is created for this user alone", async () => {
  await using dir = tempDir();
  assert.equal(prepareDirectory(socketPlace(dir.at("a", "b", "api.sock"))), undefined);
  assert.equal(mode(dir.at("a", "b")), 0o700);
});

Deno.test("socket directory that others may write to is refused and left as it is", async () => {
  await using dir = tempDir();
  for (const wrong of [0o770, 0o707, 0o1777]) {
    Deno.chmodSync(dir.path, wrong);
    const problem = prepareDirectory(socketPlace(dir.at("api.sock"))) ?? "";
    assert.match(problem, /others may write to it: expected 0700$/);
    assert.ok(problem.includes(wrong.toString(8).padStart(4, "0")), problem);
    assert.equal(mode(dir.path), wrong);
  }
  Deno.chmodSync(dir.path, 0o755);
  assert.equal(prepareDirectory(socketPlace(dir.at("api.sock"))), undefined);
});

Deno.test("socket directory of another user is refused", async () => {
  await using dir = tempDir();
  let directory = "/usr";
  // Root owns /usr; a test that runs as root gives a directory away instead.
  if (Deno.uid() === 0) {
    directory = dir.path;
    Deno.chownSync(directory, 65_534, 65_534);
  }
  const problem = prepareDirectory(socketPlace(`${directory}/api.sock`)) ?? "";
  assert.match(problem, /belongs to uid \d+ and epochd runs as \d+/);
});

Deno.test("socket directory that is a file is refused", async () => {
  await using dir = tempDir();
  dir.write("file", "");
  assert.match(prepareDirectory(socketPlace(dir.at("file", "api.sock"))) ?? "", /can't be used/);
});

Deno.test("socket link is made, and moved onto another socket", async () => {
  await using dir = tempDir();
  const place = socketPlace(dir.at("api.sock"));
  assert.equal(moveLink(place, dir.at("api-1.sock")), undefined);
  assert.equal(Deno.readLinkSync(place.link), "api-1.sock");
  assert.equal(moveLink(place, dir.at("api-2.sock")), undefined);
  assert.equal(Deno.readLinkSync(place.link), "api-2.sock");
  assert.deepEqual(names(dir), ["api.sock"]);
});

Deno.test("socket link never replaces what is no link", async () => {
  await using dir = tempDir();
  const place = socketPlace(dir.write("api.sock", "precious"));
  assert.match(moveLink(place, dir.at("api-1.sock")) ?? "", /exists and is no link of epochd/);
  assert.equal(Deno.readTextFileSync(place.link), "precious");
});

Deno.test("stale sockets of ended supervisors are removed, and nothing else", async () => {
  await using dir = tempDir();
  const place = socketPlace(dir.at("api.sock"));
  deadSocket(dir, "api-1.sock", 60_000);
  deadSocket(dir, "api-2.sock", 0);
  deadSocket(dir, "other-1.sock", 60_000);
  dir.write("api-3.sock", "a file");
  const living = Deno.listen({ transport: "unix", path: dir.at("api-4.sock") });
  Deno.utimeSync(dir.at("api-4.sock"), 0, 0);
  try {
    const accepted = living.accept();
    assert.deepEqual(await removeStale(place), [dir.at("api-1.sock")]);
    (await accepted).close();
    assert.deepEqual(names(dir), ["api-2.sock", "api-3.sock", "api-4.sock", "other-1.sock"]);
  } finally {
    living.close();
  }
});
