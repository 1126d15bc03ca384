import assert from "node:assert/strict";
import { findFreeBaseId, leaveBaseId } from "../../../lib/adapters/free_base_id.ts";
import { tempDir } from "../../support/tempdir.ts";

Deno.test("findFreeBaseId + not one with a socket, not one with a segment; undefined when none is found", async () => {
  await using dir = tempDir();
  const draws = [0, 0.25, 0.5];
  const line = "0000000000000000: 00000002 00000000 00000000 0002 01 4711 @envoy_domain_socket_parent_1000001";
  dir.write("proc/net/unix", `Num RefCount Protocol Flags Type St Inode Path\n${line}\n`);
  const places = { shmDir: dir.at("shm"), procDir: dir.at("proc") };
  dir.write("shm/envoy_shared_memory_1001000000", "");
  const random = () => draws.shift() ?? 0;
  assert.equal(await findFreeBaseId({ ...places, random }), 200_100_000);
  assert.equal(await findFreeBaseId({ ...places, random: () => 0 }), undefined);
});

Deno.test("leaveBaseId + removes the segment, but not of an Envoy that lives", async () => {
  await using dir = tempDir();
  const places = { shmDir: dir.at("shm"), procDir: dir.at("proc") };
  const segment = dir.write("shm/envoy_shared_memory_1000000", "");
  const line = "0000000000000000: 00000002 00000000 00000000 0002 01 4711 @envoy_domain_socket_parent_1000000";
  dir.write("proc/net/unix", `${line}\n`);
  await leaveBaseId(100_000, places);
  assert.ok(Deno.statSync(segment).isFile);
  dir.write("proc/net/unix", "");
  await leaveBaseId(100_000, places);
  assert.throws(() => Deno.statSync(segment), Deno.errors.NotFound);
  await leaveBaseId(100_000, places);
});
