import { strictEqual } from "node:assert/strict";
import { SystemClock } from "../../../lib/adapters/clock.ts";
import { within } from "../../support/until.ts";

Deno.test("SystemClock: fires once and not before its time", async () => {
  const clock = new SystemClock();
  const asked = clock.nowMs();
  let fired = 0;
  await within(
    "the timer",
    new Promise<void>((resolve) => {
      clock.after(30, () => {
        fired++;
        resolve();
      });
    }),
  );
  strictEqual(clock.nowMs() - asked >= 29, true);
  strictEqual(fired, 1);
});

Deno.test("SystemClock: a cancelled timer never fires", async () => {
  const clock = new SystemClock();
  let fired = false;
  const cancel = clock.after(5, () => fired = true);
  cancel();
  await within("a later timer", new Promise<void>((resolve) => clock.after(30, resolve)));
  strictEqual(fired, false);
});

Deno.test("SystemClock: a wait of more than 24 days does not fire at once", async () => {
  const clock = new SystemClock();
  let fired = false;
  const cancel = clock.after(2 ** 31 + 1000, () => fired = true);
  await within("a later timer", new Promise<void>((resolve) => clock.after(20, resolve)));
  cancel();
  strictEqual(fired, false);
});

Deno.test("SystemClock: a wall clock that jumps moves neither time nor timers", async () => {
  const clock = new SystemClock();
  const now = Date.now;
  const before = clock.nowMs();
  Date.now = () => now() - 86_400_000;
  try {
    await within("the timer", new Promise<void>((resolve) => clock.after(10, resolve)));
    strictEqual(clock.nowMs() > before, true);
    strictEqual(clock.wallMs() < now(), true);
  } finally {
    Date.now = now;
  }
});
