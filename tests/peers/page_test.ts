// Owns: the status page in a real browser, of a supervisor with a real Envoy. Must not: test the API behind it.
import assert from "node:assert/strict";
import { handoff, scene } from "../integration/scene.ts";
import { chromiumObstacle, forwardTo, openBrowser } from "../support/chromium.ts";
import { fetchOnce } from "../support/http_client.ts";
import { holdStream } from "../support/held_stream.ts";
import { runEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { pause, until } from "../support/until.ts";

const obstacle = await chromiumObstacle();
/** Where somebody wants to look at it. */
const pictures = Deno.env.get("EPOCHD_TEST_SCREENSHOTS");

function test(name: string, run: () => Promise<void>): void {
  Deno.test(obstacle === undefined ? name : `${name} (${obstacle})`, { ignore: obstacle !== undefined }, run);
}

test("the status page shows epochs, connections, a drain and a refusal while they happen, through a forwarded socket", async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 4_000, parentShutdownTimeMs: 8_000 });
  using forward = forwardTo(epochd.apiSocket);
  await using browser = await openBrowser();
  const text = () => browser.value<string>("document.body.innerText");
  const shows = (what: RegExp) =>
    until(`the page shows ${what}`, async () => what.test(await text()), { timeoutMs: 10_000 }).catch(async (error) => {
      assert.fail(`${error}\n${await text()}\n${browser.complaints.join("\n")}`);
    });
  await browser.go(`http://localhost:${forward.port}/`);
  await shows(/envoy\s+ready/);
  await shows(/live/);
  assert.match(await browser.value("document.title"), /^ready - epochd$/);
  const stream = holdStream({ target: here.listener, chunks: 150, everyMs: 50, stallMs: 20_000 });
  await stream.opened;
  await shows(/\b1\s+connections/);
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  await shows(/connections of epoch 0, which drains and ends in \d/);
  if (pictures !== undefined) await browser.screenshot(`${pictures}/page-drain.png`, "dark");
  await shows(/envoy 0 → 1\s+under way\s+SIGHUP/);
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  await epochd.waitForEvent("handoff_failed");
  await shows(/Refused .* ago \(bootstrap_invalid\): .*no_such_field/);
  assert.ok(await browser.value<number>("document.querySelectorAll('.track .drain').length") >= 1);
  if (pictures !== undefined) {
    await browser.screenshot(`${pictures}/page-light.png`, "light");
    await browser.screenshot(`${pictures}/page-dark.png`, "dark");
  }
  await handoff(epochd, 1, "done");
  await shows(/envoy 0 → 1\s+done\s+SIGHUP/);
  await shows(/epoch 0 ended/);
  stream.abandon();
  assert.deepEqual(browser.complaints, []);
  const foreign = browser.requests.filter((url) =>
    !url.startsWith(`http://localhost:${forward.port}/`) && !url.startsWith("data:")
  );
  assert.deepEqual(foreign, [], "nothing is asked of anybody else");
  epochd.signal("SIGTERM");
  await shows(/no connection, trying again/);
});

test("a text of elsewhere stays text on the page, and a page of another site is not let in", async () => {
  await using here = scene();
  const epochd = await here.start({ extraArguments: ["--no-watch-config"] });
  using forward = forwardTo(epochd.apiSocket);
  await using browser = await openBrowser();
  here.edit({ change: (bootstrap) => bootstrap["<img src=x onerror=document.title='gotcha'>"] = 1 });
  await epochd.command("restart", "--wait");
  await browser.go(`http://localhost:${forward.port}/`);
  await until(
    "the refusal",
    async () => (await browser.value<string>("document.body.innerText")).includes("<img src=x"),
  );
  assert.equal(await browser.value("document.querySelectorAll('img').length"), 0);
  assert.match(await browser.value("document.title"), /epochd/);
  // A page of another port: whatever the browser would let it read, it must not do anything here.
  const before = (await epochd.command("events", "--json")).stdout.split("\n").length;
  await using elsewhere = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  );
  await browser.go(`http://localhost:${elsewhere.addr.port}/`);
  const target = `http://localhost:${forward.port}/v1/services/envoy/restart`;
  await browser.value(`fetch("${target}", {method: "POST", mode: "no-cors"}).then(() => "sent", String)`);
  assert.equal((await epochd.command("events", "--json")).stdout.split("\n").length, before, "nothing was triggered");
  const audit = epochd.log.events.filter(({ event, status }) => event === "api_audit" && status === 403);
  assert.equal(audit.length, 1);
  const { status } = await fetchOnce({ path: epochd.apiSocket }, { path: "/v1/status" });
  assert.equal(status, 200, "who is no browser is let in as before");
});

test("over TCP the page asks for a key before it shows anything, and asks for nothing without one", async () => {
  await using here = scene();
  const [port] = freePorts(1) as [number];
  const keys = here.directory.at("keys");
  // TCP needs a newer runtime than the compiled one may have.
  const made = await runEpochd(["key", "create", "night", "--role", "read", "--file", keys], "source");
  const epochd = await here.start({
    program: "source",
    extraArguments: ["--api-listen", `127.0.0.1:${port}`, "--api-keys-file", keys],
  });
  await epochd.waitForEvent("api_listening", ({ path }) => String(path).includes(String(port)));
  await using browser = await openBrowser();
  await browser.go(`http://127.0.0.1:${port}/`);
  const text = () => browser.value<string>("document.body.innerText");
  await until("it asks for a key", async () => /wants an API key/.test(await text()));
  const denials = () => epochd.log.events.filter(({ event }) => event === "api_audit").length;
  const before = denials();
  await pause(2_500);
  assert.equal(denials(), before, "the audit log is not filled by a tab without a key");
  assert.ok(!(await text()).includes("serving"));
  await browser.value(
    `document.getElementById("key").value = ${
      JSON.stringify(made.stdout.trim())
    }; document.querySelector("#login button").click()`,
  );
  await until("it shows the service", async () => /envoy\s+ready[\s\S]*serving/.test(await text()));
  await until("it follows", async () => /\blive\b/.test(await text()));
  assert.deepEqual(browser.complaints, []);
});
