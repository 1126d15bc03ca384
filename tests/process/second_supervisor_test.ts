// Owns: two supervisors beside each other that were given the same paths: the living one keeps its API and its marker.
import assert from "node:assert/strict";
import { writeBootstrap } from "../support/bootstrap.ts";
import { type Epochd, runEpochd } from "../support/epochd.ts";
import { freePort } from "../support/ports.ts";
import { until, within } from "../support/until.ts";
import { eventsOf, scene } from "./scene.ts";

/** Who answers through the link. */
async function answering(epochd: Epochd): Promise<number> {
  return (await epochd.status() as { pid: number }).pid;
}

Deno.test("a second supervisor with the same arguments is refused; the API's link and the marker stay the first one's", async () => {
  await using here = scene();
  const first = here.start();
  await first.waitForEvent("ready_changed", ({ ready }) => ready === true);
  await until("its marker is there", () => Deno.statSync(first.readyMarker).isFile);
  await until("it answers", () => answering(first));
  const run = (readyMarker: string) =>
    runEpochd([
      "run",
      ...["--envoy-path", here.envoy.path, "--envoy-config", here.bootstrapPath, "--base-id", String(first.baseId)],
      ...["--concurrency", "1", "--drain-time", "1s", "--parent-shutdown-time", "2s"],
      ...["--state-dir", first.stateDir, "--api-socket", first.apiSocket, "--ready-marker", readyMarker],
    ]);

  const same = await run(first.readyMarker);
  assert.equal(same.code, 2, same.stderr);
  assert.match(same.stderr, new RegExp(`held by pid ${first.pid}, .*give another --ready-marker`));
  assert.equal(await answering(first), first.pid);
  assert.equal(Deno.readTextFileSync(first.readyMarker).trim().split(" ")[2], String(first.pid));

  const second = run(here.directory.at("other"));
  let isOver = false;
  const watched = (async () => {
    let looks = 0;
    for (; !isOver; looks++) assert.equal(await answering(first), first.pid);
    return looks;
  })();
  const refused = await second.finally(() => isOver = true);
  assert.ok(await watched > 3);
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(refused.stderr, /base_id_held/);
  assert.match(refused.stderr, new RegExp(`held by the supervisor with pid ${first.pid}`));
  assert.doesNotMatch(refused.stderr, /removed the ready marker/);
  assert.equal(await answering(first), first.pid);
  assert.deepEqual(eventsOf(first, "api_link_held"), []);
});

Deno.test("a second supervisor on the same socket path waits for the link, and has it when the first one has ended", async () => {
  await using here = scene();
  const first = here.start();
  await first.waitForEvent("api_listening");
  const bootstrapPath = here.directory.at("second.yaml");
  writeBootstrap(bootstrapPath, { listenPort: 1, adminPort: freePort(), generation: "second" });
  const { at } = here.directory;
  const second = here.start({
    bootstrapPath,
    extraArguments: ["--state-dir", at("second"), "--ready-marker", at("second-ready")],
  });
  const held = await second.waitForEvent("api_link_held");
  assert.deepEqual([held.path, held.pid], [first.apiSocket, first.pid]);
  await second.waitForEvent("epoch_live");
  assert.equal(await answering(first), first.pid);
  // Who waits is to be asked by its own socket.
  const own = await runEpochd(["status", "--json", "--api-socket", String(held.socket)]);
  assert.equal(JSON.parse(own.stdout).pid, second.pid, own.stderr);

  first.signal("SIGKILL");
  await within("its end", first.exit);
  await second.waitForEvent("api_listening");
  assert.equal(await answering(second), second.pid);
});
