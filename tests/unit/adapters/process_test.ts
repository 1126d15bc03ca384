import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { EpochFlags } from "../../../lib/adapters/envoy_args.ts";
import { EnvoyProcesses, execRefusal, headerProblem } from "../../../lib/adapters/process.ts";
import type { Plan } from "../../../lib/core/epoch.ts";
import type { ChildProcess, SpawnRequest } from "../../../lib/runtime/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

const flags: EpochFlags = {
  baseId: 7,
  concurrency: 1,
  drainTimeMs: 1000,
  parentShutdownTimeMs: 2000,
  userArgs: ["-l", "debug"],
};

function planOf(binaryPath: string): Plan {
  return {
    key: "k",
    bootstrapDigest: "b",
    binaryDigest: "d",
    bootstrapPath: "/state/b.yaml",
    binaryPath,
    admin: { kind: "tcp", host: "127.0.0.1", port: 1 },
  };
}

function script(dir: TempDir, text: string): string {
  const path = dir.write("envoy", `#!/bin/sh\n${text}\n`);
  Deno.chmodSync(path, 0o755);
  return path;
}

function spawn(request: SpawnRequest, isStill = true): ChildProcess {
  const spawned = new EnvoyProcesses({ flagsOf: () => flags, isStill: () => isStill }).spawn(request);
  if (spawned.kind === "failed") throw new Error(spawned.refusal.detail);
  return spawned.process;
}

function refusalOf(binaryPath: string) {
  const spawned = new EnvoyProcesses({ flagsOf: () => flags, isStill: () => true }).spawn({
    epoch: 0,
    plan: planOf(binaryPath),
  });
  if (spawned.kind === "spawned") throw new Error("it was started");
  return spawned.refusal;
}

Deno.test("EnvoyProcesses: hands over argv, RESTART_EPOCH, the environment and no stdin", async () => {
  await using dir = tempDir();
  const out = dir.at("out");
  const path = script(
    dir,
    `{ printf '%s\\n' "$@" "$RESTART_EPOCH" "$HOME"; cat; } > ${out}.part; mv ${out}.part ${out}`,
  );
  const child = spawn({ epoch: 5, plan: planOf(path) });
  deepStrictEqual(await within("its end", child.exit), { code: 0 });
  const lines = Deno.readTextFileSync(out).trimEnd().split("\n");
  deepStrictEqual(lines.slice(0, 4), ["-c", "/state/b.yaml", "--restart-epoch", "5"]);
  deepStrictEqual(lines.slice(-4), ["-l", "debug", "5", Deno.env.get("HOME")]);
});

Deno.test("EnvoyProcesses: the child has a session of its own", async () => {
  await using dir = tempDir();
  const child = spawn({ epoch: 0, plan: planOf(script(dir, "exec sleep 600")) });
  const sessionOf = (pid: number | "self") => Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]?.split(" ")[3];
  try {
    strictEqual(sessionOf(child.pid), String(child.pid));
  } finally {
    child.signal("SIGKILL");
    await child.exit;
  }
});

Deno.test("EnvoyProcesses: tells how it ended, and signals no pid that was reaped", async () => {
  await using dir = tempDir();
  const plan = planOf(script(dir, "exec sleep 600"));
  for (const [signal, code] of [["SIGTERM", 143], ["SIGKILL", 137]] as const) {
    const child = spawn({ epoch: 0, plan });
    strictEqual(child.signal(signal), true);
    deepStrictEqual(await within("its end", child.exit), { code, signal });
    strictEqual(child.signal(signal), false);
  }
  const exits = spawn({ epoch: 0, plan: planOf(script(dir, "exit 9")) });
  deepStrictEqual(await within("its end", exits.exit), { code: 9 });
});

Deno.test("EnvoyProcesses: every refusal by name", async () => {
  await using dir = tempDir();
  const missing = refusalOf(dir.at("no"));
  deepStrictEqual(missing, { name: "binary_missing", detail: `run ${dir.at("no")}: no such file` });
  strictEqual(refusalOf(`${script(dir, "")}/below`).name, "binary_missing");
  const plain = dir.write("plain", "#!/bin/sh\n");
  deepStrictEqual(refusalOf(plain), { name: "binary_not_executable", detail: `run ${plain}: permission denied` });
  strictEqual(refusalOf(dir.path).name, "binary_not_executable");
  const text = dir.write("text", "just some text, executable by its mode");
  Deno.chmodSync(text, 0o755);
  deepStrictEqual(refusalOf(text), { name: "binary_wrong_architecture", detail: `run ${text}: not an ELF executable` });
  const loaderless = dir.write("loaderless", "#!/nowhere/sh\n");
  Deno.chmodSync(loaderless, 0o755);
  deepStrictEqual(refusalOf(loaderless), {
    name: "spawn_failed",
    detail: `run ${loaderless}: the loader or interpreter that it names is missing`,
  });
});

Deno.test("execRefusal: a full process table is no fault of the binary", () => {
  deepStrictEqual(
    execRefusal(
      "/bin/envoy",
      new Error("Failed to spawn '/bin/envoy': Resource temporarily unavailable (os error 11)"),
    ),
    {
      name: "spawn_failed",
      detail: "run /bin/envoy: resource temporarily unavailable",
    },
  );
});

Deno.test("headerProblem: this very Deno can run", () => {
  strictEqual(headerProblem(Deno.execPath()), undefined);
});

Deno.test("EnvoyProcesses: takes the living process' image when the file is no longer it", async () => {
  await using dir = tempDir();
  const path = dir.at("envoy");
  const sleep = await Deno.realPath("/bin/sleep");
  Deno.copyFileSync(sleep, path);
  Deno.chmodSync(path, 0o755);
  const living = new Deno.Command(path, { args: ["600"], stdin: "null" }).spawn();
  try {
    await until("sleep runs", () => Deno.readLinkSync(`/proc/${living.pid}/exe`) === path);
    Deno.removeSync(path);
    const request = { epoch: 1, plan: planOf(path), sameBinaryAsPid: living.pid };
    const again = spawn(request, false);
    // It is sleep all the same, which refuses Envoy's flags.
    deepStrictEqual(await within("its end", again.exit), { code: 1 });
    const gone = new EnvoyProcesses({ flagsOf: () => flags, isStill: () => true }).spawn(request);
    strictEqual(gone.kind === "failed" && gone.refusal.name, "binary_missing");
  } finally {
    living.kill("SIGKILL");
    await living.status;
  }
  const dead = new EnvoyProcesses({ flagsOf: () => flags, isStill: () => false })
    .spawn({ epoch: 1, plan: planOf(path), sameBinaryAsPid: living.pid });
  strictEqual(dead.kind, "failed");
  if (dead.kind === "failed") {
    match(dead.refusal.detail, /^run \/proc\/\d+\/exe: the process whose binary it is has ended$/);
  }
});
