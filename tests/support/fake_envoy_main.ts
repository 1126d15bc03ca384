// Owns: the life of one fake Envoy process (see fake_envoy.ts for what it can be told). Must not import anything slow:
// each start of it is time that a test waits. Run as: fake_envoy_main.ts <path of the wrapper> <Envoy's arguments>.
import type { Ending, FakeBehaviour, FakeBehaviours, FakeRecord } from "./fake_envoy.ts";
import { FakeAdmin } from "./fake_envoy_admin.ts";
import { parseArguments, usageError } from "./fake_envoy_args.ts";
import { ChildSide, holdSockets, ParentSide, Segment } from "./fake_envoy_restart.ts";

const [wrapper = "", ...argv] = Deno.args;
const encoder = new TextEncoder();
const parsed = parseArguments(argv);
const epoch = parsed.kind === "ok" ? parsed.flags.epoch : 0;

type Body<R> = R extends FakeRecord ? Omit<R, "atMs" | "pid" | "epoch"> : never;

function record(body: Body<FakeRecord>): void {
  const line = JSON.stringify({ atMs: Date.now(), pid: Deno.pid, epoch, ...body }) + "\n";
  // One write to a file opened for appending: lines of several processes never mix.
  using file = Deno.openSync(`${wrapper}.records.jsonl`, { append: true, create: true });
  file.writeSync(encoder.encode(line));
}

function behaviour(): FakeBehaviour {
  const { epochs, ...all }: FakeBehaviours = JSON.parse(Deno.readTextFileSync(`${wrapper}.behaviour.json`));
  return { ...all, ...epochs?.[epoch] };
}

function say(text: string): void {
  try {
    Deno.stderr.writeSync(encoder.encode(`${text}\n`));
  } catch { /* nobody reads it any more */ }
}

function end(ending: Ending, why: string): never {
  say(`[fake envoy ${epoch}] ${why}`);
  record({ kind: "end", ...ending, why });
  if ("signal" in ending) {
    Deno.kill(Deno.pid, ending.signal);
    // The signal is delivered on the way out of the call; should it be blocked, this is how a shell would name it.
    Deno.exit(128);
  }
  Deno.exit(ending.code);
}

function after(ms: number | "never"): Promise<void> {
  // An interval, because a promise alone keeps no process alive.
  if (ms === "never") return new Promise(() => setInterval(() => {}, 1_000_000));
  return ms === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}

async function dieIfAt(moment: "before_init" | "after_admin" | "after_live"): Promise<void> {
  const { dieAt } = behaviour();
  if (dieAt?.moment !== moment) return;
  if (dieAt.afterMs !== undefined) await after(dieAt.afterMs);
  end("signal" in dieAt ? { signal: dieAt.signal } : { code: dieAt.code }, `told to die at ${moment}`);
}

function readBootstrap(path: string | undefined): string {
  if (path === undefined) end({ code: 1 }, "At least one of --config-path or --config-yaml should be non-empty");
  try {
    return Deno.readTextFileSync(path);
  } catch {
    end({ code: 1 }, `unable to read file: ${path}`);
  }
}

/** As Envoy does it: the kernel sends SIGTERM when the thread that spawned this process ends. */
function dieWithParent(): void {
  const PR_SET_PDEATHSIG = 1;
  const libc = Deno.dlopen("libc.so.6", { prctl: { parameters: ["i32", "u64"], result: "i32" } });
  libc.symbols.prctl(PR_SET_PDEATHSIG, 15n);
}

async function serve(): Promise<void> {
  if (parsed.kind !== "ok") return;
  const { flags } = parsed;
  const bootstrap = readBootstrap(flags.configPath);
  record({ kind: "start", argv, env: Deno.env.toObject(), bootstrap });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"] as const) {
    Deno.addSignalListener(signal, () => {
      record({ kind: "signal", signal });
      const ends = signal === "SIGTERM" || signal === "SIGINT";
      if (ends && behaviour().ignoreTerm !== true) end({ code: 0 }, `caught ${signal}`);
    });
  }
  dieWithParent();
  const { stderr } = behaviour();
  if (stderr !== undefined) say(stderr);

  const sockets = holdSockets(flags.baseId, epoch);
  if (sockets === undefined) end({ code: 1 }, "unable to bind domain socket, errno=98 (see --base-id option)");
  const segment = Segment.attach(flags.baseId, epoch);
  if (segment === undefined) end({ signal: "SIGABRT" }, "cannot open shared memory region, errno=2");
  if (segment.initializing) end({ code: 1 }, "previous envoy process is still initializing");
  segment.initializing = true;
  await dieIfAt("before_init");

  const parent = epoch === 0 ? undefined : await ChildSide.connect(flags.baseId, epoch - 1);
  if (epoch > 0 && parent === undefined && !flags.skipOnNoParent) end({ signal: "SIGABRT" }, "no parent, errno=111");
  parent?.onLost(() => end({ signal: "SIGABRT" }, "lost the parent before its time, errno=111"));
  await parent?.ask("shutdown_admin");

  const admin = FakeAdmin.start({
    epoch,
    flags,
    bootstrap,
    behaviour,
    say,
    onRequest: (method, path) => record({ kind: "admin", method, path }),
    onQuit: () => end({ code: 0 }, "asked to quit"),
  });
  if (admin === undefined) end({ code: 1 }, "cannot bind the admin address: Address already in use");
  record({ kind: "admin_up" });
  ParentSide.serve(sockets.parent, async (what) => {
    record({ kind: "asked_by_child", what });
    if (what === "shutdown_admin") {
      // A third generation ends the first at once, whatever it still holds.
      await parent?.ask("terminate");
      await admin.stopListening();
    }
    if (what === "terminate") queueMicrotask(() => end({ code: 0 }, "ended by the successor"));
  });
  await dieIfAt("after_admin");

  await after(behaviour().liveAfterMs ?? 20);
  segment.initializing = false;
  admin.state = "LIVE";
  record({ kind: "live" });
  await parent?.ask("drain");
  await dieIfAt("after_live");
  await after(flags.parentShutdownTimeS * 1000);
  await parent?.ask("terminate");
}

switch (parsed.kind) {
  case "usage":
    say(usageError(parsed));
    Deno.exit(1);
    break;
  case "version": {
    record({ kind: "version", argv });
    const { version = "1.40.0", hotRestartVersion = "11.104", versionAfterMs = 0 } = behaviour();
    await after(versionAfterMs);
    const text = `\n${wrapper}  version: ${"0".repeat(40)}/${version}/Clean/RELEASE/BoringSSL\n\n`;
    Deno.stdout.writeSync(encoder.encode(parsed.hotRestart ? `${hotRestartVersion}\n` : text));
    break;
  }
  case "validate": {
    const bootstrap = readBootstrap(parsed.configPath);
    record({ kind: "validate", argv, bootstrap });
    const { code = 0, stderr, afterMs = 0 } = behaviour().validate ?? {};
    await after(afterMs);
    if (stderr !== undefined) say(stderr);
    if (code === 0) Deno.stdout.writeSync(encoder.encode(`configuration '${parsed.configPath}' OK\n`));
    Deno.exit(code);
    break;
  }
  case "ok":
    await serve();
}
