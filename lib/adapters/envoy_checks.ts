// Owns: what a binary says about itself and about a bootstrap, run once for each content. Must not: start an epoch.

import type { Plan } from "../core/epoch.ts";
import { type Refusal, refusal } from "../core/refusal.ts";
import { type Ran, type Run, runBounded } from "./bounded_run.ts";
import { argsIdentity, type EpochFlags, validateArgs } from "./envoy_args.ts";
import { execRefusal } from "./process.ts";

export type Printed =
  | { readonly kind: "printed"; readonly version: string }
  | { readonly kind: "refused"; readonly refusal: Refusal };

export interface EnvoyChecksOptions {
  readonly versionTimeoutMs?: number;
  readonly validateTimeoutMs?: number;
  /** Verdicts that are kept: good ones are cheap to find again, bad ones are asked for again and again. */
  readonly kept?: number;
}

export class EnvoyChecks {
  private readonly versions: Remembered<Printed>;
  private readonly verdicts: Remembered<Refusal | undefined>;

  constructor(private readonly options: EnvoyChecksOptions = {}) {
    this.versions = new Remembered(options.kept ?? 64);
    this.verdicts = new Remembered(options.kept ?? 64);
  }

  /** What `--hot-restart-version` prints, for example `11.104`. */
  async hotRestartVersion(plan: Plan, signal: AbortSignal): Promise<Printed> {
    return (await this.versions.get(plan.binaryDigest, signal, (ended) => this.askVersion(plan.binaryPath, ended)))
      .value;
  }

  /** The verdict of `--mode validate` with the flags of an epoch; `files` is the state of the files that the bootstrap names. */
  async validate(
    plan: Plan,
    flags: EpochFlags,
    files: string,
    signal: AbortSignal,
  ): Promise<{ readonly refusal: Refusal | undefined; readonly cached: boolean }> {
    const key = [plan.binaryDigest, plan.bootstrapDigest, argsIdentity(flags), files].join("\n");
    const { value, cached } = await this.verdicts.get(key, signal, (ended) => this.askValidate(plan, flags, ended));
    return { refusal: value, cached };
  }

  private async askVersion(path: string, signal: AbortSignal): Promise<Final<Printed>> {
    const timeoutMs = this.options.versionTimeoutMs ?? 5000;
    const ran = await runWhenWritten(path, ["--hot-restart-version"], { timeoutMs, signal });
    const no = (name: Refusal, final: boolean): Final<Printed> => ({
      value: { kind: "refused", refusal: name },
      final,
    });
    const call = `run ${path} --hot-restart-version`;
    switch (ran.kind) {
      case "failed":
        return no(execRefusal(path, ran.error), false);
      case "timeout":
        return no(refusal("binary_hangs", `${call}: did not end within ${timeoutMs} ms`), false);
      case "aborted":
        return no(refusal("stopping", `${call}: ended before its answer`), false);
      case "ended": {
        // 1.38.3 to 1.40.0 print it on stderr, and warnings before it (cgroup_cpu_util.cc, where cgroup v1 is not as it expects).
        const version = (ran.stdout.trim() || ran.stderr.trim()).split("\n").at(-1)!.trim();
        if (ran.code === 0 && /^\S{1,64}$/.test(version)) return { value: { kind: "printed", version }, final: true };
        const said = oneLine(ran.stderr || ran.stdout) || "nothing";
        return no(
          refusal("spawn_failed", `${call}: ended with ${ran.code} and said ${said}; is it Envoy with hot restart?`),
          true,
        );
      }
    }
  }

  private async askValidate(plan: Plan, flags: EpochFlags, signal: AbortSignal): Promise<Final<Refusal | undefined>> {
    const timeoutMs = this.options.validateTimeoutMs ?? 30_000;
    const ran = await runBounded(plan.binaryPath, validateArgs(flags, plan.bootstrapPath), { timeoutMs, signal });
    switch (ran.kind) {
      case "failed":
        return { value: execRefusal(plan.binaryPath, ran.error), final: false };
      case "timeout":
        return {
          value: refusal("binary_hangs", `run ${plan.binaryPath} --mode validate: did not end within ${timeoutMs} ms`),
          final: false,
        };
      case "aborted":
        return { value: refusal("stopping", "validation was ended before its verdict"), final: false };
      case "ended":
        if (ran.code === 0) return { value: undefined, final: true };
        // Killed by something else (out of memory): no verdict.
        if (ran.code > 128) {
          return {
            value: refusal(
              "bootstrap_invalid",
              `Envoy died with ${ran.code} on validating: ${validationReason(ran.stderr)}`,
            ),
            final: false,
          };
        }
        return {
          value: refusal(
            "bootstrap_invalid",
            validationReason(ran.stderr) || `Envoy refused it with exit code ${ran.code}`,
          ),
          final: true,
        };
    }
  }
}

/** ETXTBSY: somebody still has the binary open for writing; in a moment it is whole. */
async function runWhenWritten(path: string, args: readonly string[], run: Run): Promise<Ran> {
  for (const started = performance.now();;) {
    const ran = await runBounded(path, args, run);
    const isBusy = ran.kind === "failed" && /os error 26\b/.test(String(ran.error));
    if (!isBusy || performance.now() - started >= run.timeoutMs) return ran;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What is wrong, out of what `--mode validate` says (1.38 to 1.40), in one line. */
export function validationReason(stderr: string): string {
  const text = stderr.split(/^(?:error initializing configuration '[^']*': |error: )/m).at(-1) ?? "";
  // Constraint violations print the whole message first, then `\n: ` and what is wrong with it.
  const said = oneLine(text.slice(text.lastIndexOf("\n: ") + 1).replace(/^: /, ""));
  const short = shortenChain(withoutContent(said));
  return short.length > 600 ? `${short.slice(0, 600)}...` : short;
}

/** `Unable to parse JSON as proto (REASON): {the whole bootstrap}`: what is wrong comes first, what follows may hold secrets. */
function withoutContent(text: string): string {
  if (!text.includes("{")) return text;
  return text.replace(/\{.*$/s, "").replace(/[\s:]+$/, "") ||
    "Envoy's reason holds the bootstrap's content and is left out";
}

/**
 * `(AError.B: embedded message failed validation | caused by CError.D[0]: ... | caused by EError.F: too large)` is as long as the
 * bootstrap is deep; `(B.D[0].F: too large)` says the same.
 */
function shortenChain(text: string): string {
  const causes = text.split(" | caused by ");
  const path: string[] = [];
  for (const [i, cause] of causes.slice(0, -1).entries()) {
    const field = /(?:^|\()\w+ValidationError\.([\w[\]]+): embedded message failed validation$/.exec(cause);
    if (field?.[1] === undefined || (i > 0 && field.index > 0)) return text;
    path.push(field[1]);
  }
  if (path.length === 0) return text;
  const last = /^\w+ValidationError\.([\w[\]]+): (.*)$/.exec(causes.at(-1) ?? "");
  const start = text.slice(0, text.indexOf("(") + 1);
  return last === null
    ? `${start}${path.join(".")}: ${causes.at(-1)}`
    : `${start}${[...path, last[1]].join(".")}: ${last[2]}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

interface Final<T> {
  readonly value: T;
  /** False: true today only (a timeout, an abort), not to be remembered. */
  readonly final: boolean;
}

/** Answers by key, each asked for once, also when two ask at the same time. The asking ends when all who wait have given up. */
class Remembered<T> {
  private readonly answers = new Map<string, T>();
  private readonly asking = new Map<
    string,
    { readonly answer: Promise<T>; readonly end: AbortController; waiting: number }
  >();

  constructor(private readonly limit: number) {}

  async get(
    key: string,
    signal: AbortSignal,
    askFor: (ended: AbortSignal) => Promise<Final<T>>,
  ): Promise<{ readonly value: T; readonly cached: boolean }> {
    const known = this.answers.get(key);
    if (known !== undefined || this.answers.has(key)) return { value: known as T, cached: true };
    const asked = this.asking.get(key) ?? this.start(key, askFor);
    asked.waiting++;
    const leave = () => {
      if (--asked.waiting > 0) return;
      asked.end.abort();
      // Who asks from now on gets an asking of his own.
      if (this.asking.get(key) === asked) this.asking.delete(key);
    };
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      return { value: await asked.answer, cached: false };
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  private start(key: string, askFor: (ended: AbortSignal) => Promise<Final<T>>) {
    const end = new AbortController();
    const answer = askFor(end.signal).then(({ value, final }) => {
      if (this.asking.get(key) === asked) this.asking.delete(key);
      if (final) {
        this.answers.set(key, value);
        for (const oldest of this.answers.keys()) if (this.answers.size > this.limit) this.answers.delete(oldest);
      }
      return value;
    });
    const asked = { answer, end, waiting: 0 };
    this.asking.set(key, asked);
    return asked;
  }
}
