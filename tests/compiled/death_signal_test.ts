import assert from "node:assert/strict";
import { libraryText, written } from "../../tools/death_signal.ts";

Deno.test("lib/death_signal/library.ts + what the pinned compiler makes of death_signal.c", async () => {
  assert.equal(Deno.readTextFileSync(written), await libraryText(), "run tools/death_signal.ts");
});
