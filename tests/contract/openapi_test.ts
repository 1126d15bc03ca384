// Owns: the API of a real supervisor against its own description: schemathesis asks everything that it allows, and much that it
// does not. Must not: run where clients without a certificate would get in (then there is no TCP listener).
import assert from "node:assert/strict";
import { isOlder, leastTcpRuntime } from "../../lib/config/api_rules.ts";
import { createKey, formatEntry } from "../../lib/api/keys.ts";
import { configStage } from "../integration/config_scene.ts";
import { eventsOf } from "../integration/scene.ts";
import { freePorts } from "../support/ports.ts";
import { bringSchemathesis } from "./schemathesis.ts";

const tool = isOlder(Deno.version.deno, leastTcpRuntime)
  ? { why: `no TCP listener on Deno ${Deno.version.deno}` }
  : await bringSchemathesis();
const reason = "why" in tool ? ` (skipped: ${tool.why})` : "";

Deno.test({
  name: `the API gives no answer that openapi.json does not describe, and no 5xx, whatever it is asked${reason}`,
  ignore: "why" in tool,
  fn: async () => {
    await using stage = configStage();
    const [port] = freePorts(1) as [number];
    const { key, entry } = createKey("schemathesis", "admin", "");
    const keys = stage.directory.write("keys", `${formatEntry(entry)}\n`);
    const epochd = await stage.start(["--api-listen", `127.0.0.1:${port}`, "--api-keys-file", keys]);
    await epochd.waitForEvent("api_listening", ({ path }) => String(path).endsWith(`:${port}`));
    await epochd.waitForEvent("api_credentials_read");
    const config = decodeURIComponent(new URL("schemathesis.toml", import.meta.url).pathname);
    const { code, stdout } = await new Deno.Command("path" in tool ? tool.path : "", {
      args: [
        ...["--config-file", config, "run", `http://127.0.0.1:${port}/openapi.json`],
        ...["--header", `Authorization: Bearer ${key}`],
        // An event stream never ends.
        ...["--exclude-path", "/v1/events"],
        ...[
          "--phases",
          "examples,coverage,fuzzing",
          "--max-examples",
          "40",
          "--seed",
          "1",
          "--generation-deterministic",
        ],
        ...["--request-timeout", "30", "--warnings", "off", "--no-color"],
      ],
      cwd: stage.directory.path,
      stdin: "null",
      stdout: "piped",
    }).output();
    const text = new TextDecoder().decode(stdout);
    assert.equal(code, 0, text);
    assert.match(text, /No issues found|\d+ passed/);
    assert.deepEqual(eventsOf(epochd, "bug"), []);
  },
});
