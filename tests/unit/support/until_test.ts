import assert from "node:assert/strict";
import { until, within } from "../../support/until.ts";

Deno.test("until gives the fact as soon as it is there", async () => {
  let looks = 0;
  assert.equal(await until("the third look", () => ++looks >= 3 && `look ${looks}`, { everyMs: 1 }), "look 3");
});

Deno.test("until names the fact and the last value seen", async () => {
  await assert.rejects(
    until("pigs fly", () => ({ pigs: "grounded" }).pigs === "flying", { timeoutMs: 30, everyMs: 5 }),
    /waited 30 ms in vain until pigs fly; last seen: false/,
  );
});

Deno.test("until takes an exception for not yet", async () => {
  let looks = 0;
  const look = () => {
    if (++looks < 3) throw new Error("refused");
    return true;
  };
  assert.equal(await until("it answers", look, { everyMs: 1 }), true);
  const never = () => {
    throw new Error("refused");
  };
  await assert.rejects(until("it answers", never, { timeoutMs: 20 }), /last seen: Error: refused/);
});

Deno.test("until ends although a look never comes back", async () => {
  await assert.rejects(until("an answer", () => new Promise(() => {}), { timeoutMs: 20 }), /in vain until an answer/);
});

Deno.test("within bounds a promise", async () => {
  assert.equal(await within("it", Promise.resolve(7), 1_000), 7);
  await assert.rejects(within("the end of time", new Promise(() => {}), 10), /in vain for the end of time/);
});
