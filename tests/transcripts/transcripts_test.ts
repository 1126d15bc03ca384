// Recorded runs of the core. `UPDATE=1` records them anew: read the difference before you keep it.

import assert from "node:assert/strict";
import { play } from "./player.ts";

const folder = new URL(".", import.meta.url);
const update = Deno.env.get("UPDATE") === "1";

for (const { name } of [...Deno.readDirSync(folder)].sort((a, b) => a.name.localeCompare(b.name))) {
  if (!name.endsWith(".txt")) continue;
  Deno.test(`transcript ${name.replace(".txt", "").replaceAll("_", " ")} + as recorded`, () => {
    const path = new URL(name, folder);
    const recorded = Deno.readTextFileSync(path);
    const played = play(recorded);
    if (update) Deno.writeTextFileSync(path, played);
    else assert.equal(played, recorded);
  });
}
