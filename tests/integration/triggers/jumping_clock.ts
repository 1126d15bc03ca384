// Owns: epochd with a wall clock that a test can set: the file that CLOCK_OFFSET_FILE names holds the milliseconds to add.
// Must not: touch the monotonic clock or timers; that the two are kept apart is what is tried.

const path = Deno.env.get("CLOCK_OFFSET_FILE") ?? "";
const real = Date.now;

function offsetMs(): number {
  try {
    return Number(Deno.readTextFileSync(path));
  } catch {
    return 0;
  }
}

Date.now = () => real() + offsetMs();
globalThis.Date = new Proxy(Date, {
  construct: (target, args) => args.length === 0 ? new target(target.now()) : Reflect.construct(target, args),
});

await import("../../../main.ts");
