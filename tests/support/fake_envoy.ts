// Owns: making fake Envoys for process tests: what one shall do, and what it recorded. Must not be the fake itself
// (fake_envoy_main.ts). It is honest to what was measured on the real one (hot restart, exit codes, flags) but serves no
// traffic: where requests matter, take the real one.
import { until } from "./until.ts";

export type Ending =
  | { readonly code: number }
  /** It ends itself by this signal: SIGKILL looks like the OOM killer, SIGABRT like a panic. */
  | { readonly signal: Deno.Signal };

export interface FakeBehaviour {
  /** Default 1.40.0 and 11.104. */
  readonly version?: string;
  readonly hotRestartVersion?: string;
  /** `--version` and `--hot-restart-version` take this long; "never": they hang. */
  readonly versionAfterMs?: number | "never";
  /** `--mode validate`. Default: exit 0 at once. */
  readonly validate?: { readonly code?: number; readonly stderr?: string; readonly afterMs?: number | "never" };
  /** From taking the admin over to LIVE. Default 20 ms; "never": stuck initialising. */
  readonly liveAfterMs?: number | "never";
  /**
   * `before_init`: flag set, parent untouched (a bad bootstrap, a held port). `after_admin`: the parent's admin is
   * down, its own is up. `after_live`: LIVE, the parent drains. `afterMs` more than that.
   */
  readonly dieAt?: Ending & {
    readonly moment: "before_init" | "after_admin" | "after_live";
    readonly afterMs?: number;
  };
  /** `hang`: connections are accepted and never answered. `refuse`: nobody listens. Applies from the next connection. */
  readonly admin?: "answer" | "hang" | "refuse";
  /** Default 0. */
  readonly adminDelayMs?: number;
  /** The body of `/server_info`, in place of what Envoy says there. */
  readonly serverInfo?: string;
  readonly ignoreTerm?: boolean;
  /** Written to stderr at the start. */
  readonly stderr?: string;
  /** Added to or put in place of the lines of `/stats`. */
  readonly stats?: Readonly<Record<string, number>>;
}

/** The content of the behaviour file: for all epochs, and what single epochs do otherwise. */
export interface FakeBehaviours extends FakeBehaviour {
  readonly epochs?: Readonly<Record<number, FakeBehaviour>>;
}

export type FakeRecord =
  & { readonly atMs: number; readonly pid: number; readonly epoch: number }
  & (
    | {
      readonly kind: "start";
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly bootstrap: string;
    }
    | { readonly kind: "validate"; readonly argv: readonly string[]; readonly bootstrap: string }
    | { readonly kind: "version"; readonly argv: readonly string[] }
    | { readonly kind: "signal"; readonly signal: string }
    | { readonly kind: "admin"; readonly method: string; readonly path: string }
    /** What its successor asked of it: `shutdown_admin`, `drain` or `terminate`. */
    | { readonly kind: "asked_by_child"; readonly what: string }
    | { readonly kind: "admin_up" | "live" }
    /** Missing after SIGKILL. */
    | { readonly kind: "end"; readonly code?: number; readonly signal?: string; readonly why: string }
  );

export type RecordOf<K extends FakeRecord["kind"]> = Extract<FakeRecord, { readonly kind: K }>;

export interface FakeEnvoy {
  /** An executable that takes Envoy's flags. */
  readonly path: string;
  /** Replaces the behaviours, also of what runs (delays under way keep their length). */
  behave(behaviours: FakeBehaviours): void;
  records(): FakeRecord[];
  recordsOf<K extends FakeRecord["kind"]>(kind: K, epoch?: number): RecordOf<K>[];
  /** Waits until at least `count` records of this kind are there and returns them. */
  untilRecord<K extends FakeRecord["kind"]>(kind: K, epoch?: number, count?: number): Promise<RecordOf<K>[]>;
}

/** Makes a fake Envoy named `name` in `directory`, with its behaviour and record files beside it. */
export function fakeEnvoy(directory: string, behaviours: FakeBehaviours = {}, name = "envoy"): FakeEnvoy {
  const path = `${directory}/${name}`;
  const behaviourPath = `${path}.behaviour.json`;
  const recordPath = `${path}.records.jsonl`;
  const program = decodeURIComponent(new URL("./fake_envoy_main.ts", import.meta.url).pathname);
  const behave = (next: FakeBehaviours) => {
    Deno.writeTextFileSync(`${behaviourPath}.draft`, JSON.stringify(next));
    Deno.renameSync(`${behaviourPath}.draft`, behaviourPath);
  };
  behave(behaviours);
  Deno.writeTextFileSync(recordPath, "");
  // DENO_DIR is fixed here: the supervisor may give its child another environment, and a cold cache costs a second.
  const lines = [
    "#!/bin/sh",
    `export DENO_DIR=${quoted(denoDir())} DENO_NO_UPDATE_CHECK=1`,
    `exec ${quoted(Deno.execPath())} run -A --quiet --no-lock ${quoted(program)} ${quoted(path)} "$@"`,
  ];
  Deno.writeTextFileSync(path, lines.join("\n") + "\n");
  Deno.chmodSync(path, 0o755);

  const records = (): FakeRecord[] =>
    Deno.readTextFileSync(recordPath).split("\n").slice(0, -1).map((line) => JSON.parse(line));
  const recordsOf = <K extends FakeRecord["kind"]>(kind: K, epoch?: number): RecordOf<K>[] =>
    records().filter((record): record is RecordOf<K> =>
      record.kind === kind && (epoch === undefined || record.epoch === epoch)
    );
  return {
    path,
    behave,
    records,
    recordsOf,
    untilRecord(kind, epoch, count = 1) {
      return until(`fake Envoy ${epoch ?? "of any epoch"} recorded ${count} x ${kind}`, () => {
        const found = recordsOf(kind, epoch);
        return found.length >= count && found;
      });
    },
  };
}

function denoDir(): string {
  return Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME") ?? "/root"}/.cache/deno`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
