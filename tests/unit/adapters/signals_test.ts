import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { onSignals } from "../../../lib/adapters/signals.ts";
import { until } from "../../support/until.ts";

Deno.test("onSignals: calls back for each signal until it is ended", async () => {
  const heard: string[] = [];
  const end = onSignals({ SIGHUP: () => heard.push("HUP"), SIGUSR1: () => heard.push("USR1") });
  // A second listener keeps the default action (death) away when the first has ended.
  const keep = onSignals({ SIGHUP: () => heard.push("kept") });
  try {
    Deno.kill(Deno.pid, "SIGHUP");
    await until("SIGHUP was heard by both", () => heard.includes("HUP") && heard.includes("kept"));
    Deno.kill(Deno.pid, "SIGUSR1");
    await until("SIGUSR1 was heard", () => heard.includes("USR1"));
    end();
    heard.length = 0;
    Deno.kill(Deno.pid, "SIGHUP");
    await until("SIGHUP was heard by the other", () => heard.includes("kept"));
    deepStrictEqual(heard, ["kept"]);
    end();
  } finally {
    keep();
  }
});

Deno.test("onSignals: after its end a signal has its default action again", async () => {
  const module = new URL("../../../lib/adapters/signals.ts", import.meta.url).href;
  const code = `const { onSignals } = await import(${JSON.stringify(module)});
    const end = onSignals({ SIGUSR1: () => {} }); Deno.kill(Deno.pid, "SIGUSR1"); end();
    await new Promise((resolve) => setTimeout(resolve, 50)); Deno.kill(Deno.pid, "SIGUSR1"); setTimeout(() => {}, 60_000);`;
  const child = new Deno.Command(Deno.execPath(), { args: ["eval", "--no-config", code], stdin: "null" }).spawn();
  strictEqual((await child.status).signal, "SIGUSR1");
});
