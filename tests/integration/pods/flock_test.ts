import assert from "node:assert/strict";
import { FileLock } from "../../../lib/adapters/flock.ts";
import { holdLock } from "./lock_holder.ts";
import { tempDir } from "../../support/tempdir.ts";
import { within } from "../../support/until.ts";

const hasTry = "tryLock" in Deno.FsFile.prototype;

for (const canTry of hasTry ? [true, false] : [false]) {
  const how = canTry ? "by tryLock" : "by a lock that waits";

  Deno.test(`FileLock ${how} + taken at once when it is free, twice too, and let go`, async () => {
    await using dir = tempDir();
    const lock = new FileLock(dir.at("lock"), { canTry });
    assert.equal(await lock.take(0), true);
    assert.equal(await lock.take(0), true);
    assert.equal(lock.held, true);
    lock.release();
    assert.equal(lock.held, false);
    const other = new FileLock(dir.at("lock"), { canTry });
    assert.equal(await other.take(1_000), true);
    other.release();
    assert.equal((Deno.statSync(dir.at("lock")).mode ?? 0) & 0o777, 0o600);
  });

  Deno.test(`FileLock ${how} + waits no longer than asked for one that another program holds, and gets it when that ends`, async () => {
    await using dir = tempDir();
    const lock = new FileLock(dir.at("lock"), { canTry });
    const holder = await holdLock(dir.at("lock"));
    assert.equal(await within("a bounded wait", lock.take(50), 5_000), false);
    const taken = lock.take(20_000);
    await holder[Symbol.asyncDispose]();
    assert.equal(await taken, true);
    lock.release();
  });

  Deno.test(`FileLock ${how} + several waits of one process don't stand in each other's way`, async () => {
    await using dir = tempDir();
    const lock = new FileLock(dir.at("lock"), { canTry });
    assert.deepEqual(await Promise.all([lock.take(1_000), lock.take(0), lock.take(1_000)]), [true, true, true]);
    lock.release();
  });

  Deno.test(`FileLock ${how} + a wish that is over is not granted later`, async () => {
    await using dir = tempDir();
    const lock = new FileLock(dir.at("lock"), { canTry });
    const holder = await holdLock(dir.at("lock"));
    const taken = lock.take(canTry ? 20_000 : 500);
    lock.release();
    assert.equal(await within("the end of the wait", taken, 5_000), false);
    await holder[Symbol.asyncDispose]();
    assert.equal(lock.held, false);
    const other = new FileLock(dir.at("lock"), { canTry });
    assert.equal(await other.take(5_000), true);
    other.release();
  });

  Deno.test(`FileLock ${how} + questions disturb each other's answer as little as an owner's lock`, async () => {
    await using dir = tempDir();
    const [one, two] = [1, 2].map(() => new FileLock(dir.at("lock"), { canTry, shared: true })) as [FileLock, FileLock];
    assert.equal(await one.take(0), true);
    assert.equal(await two.take(100), true);
    one.release();
    two.release();
    const owner = new FileLock(dir.at("lock"), { canTry });
    assert.equal(await owner.take(1_000), true);
    assert.equal(await one.take(50), false);
    owner.release();
    assert.equal(await one.take(5_000), true);
    one.release();
  });
}

Deno.test("FileLock + rejects where the file can't be opened", async () => {
  await using dir = tempDir();
  await assert.rejects(new FileLock(dir.at("absent", "lock")).take(0));
});
