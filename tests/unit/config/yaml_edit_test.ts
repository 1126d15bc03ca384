import assert from "node:assert/strict";
import { editYaml } from "../../../lib/config/yaml_edit.ts";

const text = `# two services
services:
  edge:   # the edge
    drain_time: 2s # short
    envoy_args: [--log-level, debug]

  # the core
  core:
    "drain_time": '2s'
    envoy_args:
    - -l
    - info
log:
  level: info`;

function edited(path: string, value?: unknown, from = text): string {
  const result = editYaml(from, [{ path: path.split("."), ...(value === undefined ? {} : { value }) }]);
  assert.ok("text" in result, JSON.stringify(result));
  return result.text;
}

Deno.test("editYaml replaces a value and leaves every other byte alone", () => {
  assert.equal(edited("services.edge.drain_time", "3s"), text.replace("2s # short", "3s # short"));
  assert.equal(edited("services.core.drain_time", "3s"), text.replace("'2s'", "3s"));
  assert.equal(edited("log.level", "debug"), text.replace(/info$/, "debug"));
});

Deno.test("editYaml adds a key behind the last one of its mapping, and leaves every other byte alone", () => {
  assert.equal(edited("services.edge.watchdog", "5s"), text.replace("debug]\n", "debug]\n    watchdog: 5s\n"));
  assert.equal(edited("services.core.watchdog", "5s"), text.replace("- info\n", "- info\n    watchdog: 5s\n"));
  assert.equal(edited("log.format", "json"), `${text}\n  format: json\n`);
  assert.equal(edited("services.new", { base_id: 3 }), text.replace("- info\n", "- info\n  new:\n    base_id: 3\n"));
  assert.equal(edited("services.edge.x", ["a: b", "c"]), text.replace("debug]\n", 'debug]\n    x: ["a: b", "c"]\n'));
});

Deno.test("editYaml removes a key with its line, or a service with all of its lines", () => {
  assert.equal(edited("services.edge.drain_time"), text.replace("    drain_time: 2s # short\n", ""));
  const core = text.slice(text.indexOf("  core:"), text.indexOf("log:"));
  assert.equal(edited("services.core"), text.replace(core, ""));
});

Deno.test("editYaml makes a section that is missing, empty or null", () => {
  for (const from of ["services: {}\n", "services: {}\nlog:\n", "services: {}\nlog: {}\n", ""]) {
    assert.match(edited("log.level", "warn", from), /log:\n? *\{? ?level: warn/);
  }
});

Deno.test("editYaml keeps comments where a list is put in place of another", () => {
  const result = edited("services.core.envoy_args", ["--x", "y"]);
  for (const comment of ["# two services", "# the edge", "# short", "# the core"]) {
    assert.ok(result.includes(comment), comment);
  }
  assert.match(result, /envoy_args:\n {4}- --x\n {4}- "?y"?\n/);
});

Deno.test("editYaml says why it can't, where the text is no YAML or the place is a value", () => {
  assert.ok("why" in editYaml("a: [", [{ path: ["a"], value: 1 }]));
});
