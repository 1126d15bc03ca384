// Owns: what epochd-probe must answer, as a table that any probe - this one or a native one - can be held against.
// Must not: know how the probe is started.

import { tempDir } from "../../support/tempdir.ts";

export interface ProbeCase {
  readonly name: string;
  readonly args: readonly string[];
  readonly exitCode: 0 | 1 | 2;
  /** On stdout for 0 and 1, on stderr for 2; absent: nothing. */
  readonly line?: RegExp;
  /** Shows only in a process of its own: as another user, or started by this shell line with the probe as "$@". */
  readonly process?: { readonly uid?: number; readonly shell?: string };
  /** Deno ends with 101 on any argument that is not UTF-8, before the program's first line. */
  readonly isBeyondDeno?: true;
}

export interface ProbeCases extends AsyncDisposable {
  readonly cases: readonly ProbeCase[];
  /** Before each case, as the ages of markers are relative to now. */
  refresh(): void;
}

const nobody = 65534;

export function probeCases(): ProbeCases {
  const dir = tempDir();
  const ages = new Map<string, number>();
  const marker = (name: string, ageMs: number) => {
    const path = dir.write(name, "");
    ages.set(path, ageMs);
    return path;
  };
  const at = (path: string, ...more: string[]) => ["--ready-marker", path, ...more];
  const fresh = marker("fresh", 0);
  const old = marker("old", 60_000);
  const link = dir.at("link");
  Deno.symlinkSync(fresh, link);
  const dangling = dir.at("dangling");
  Deno.symlinkSync("nowhere", dangling);
  const circle = dir.at("circle");
  Deno.symlinkSync("circle", circle);
  const pipe = dir.at("pipe");
  new Deno.Command("mkfifo", { args: [pipe] }).outputSync();
  const secret = marker("secret", 0);
  Deno.chmodSync(secret, 0);
  const hidden = marker("closed/marker", 0);
  Deno.chmodSync(dir.at("closed"), 0o700);
  Deno.chmodSync(dir.path, 0o755);
  // Not every file system holds a time that JavaScript doesn't.
  const far = markerOf(`${Deno.makeTempDirSync({ dir: "/dev/shm", prefix: "epd-" })}/far`, 99_999_999_999_999_000);

  const cases: ProbeCase[] = [
    { name: "fresh marker", args: at(fresh), exitCode: 0 },
    { name: "fresh marker, values after =", args: [`--ready-marker=${fresh}`, "--max-age=10s"], exitCode: 0 },
    { name: "flags in the other order", args: ["--max-age", "10s", ...at(fresh)], exitCode: 0 },
    { name: "marker within --max-age", args: at(old, "--max-age", "2m"), exitCode: 0 },
    { name: "link to a fresh marker", args: at(link), exitCode: 0 },
    { name: "marker a second from the future", args: at(marker("soon", -1_000)), exitCode: 0 },
    { name: "marker with an = in its name", args: [`--ready-marker=${marker("a=b", 0)}`], exitCode: 0 },
    {
      name: "marker named like a flag",
      args: at("--max-age"),
      exitCode: 1,
      line: /^not ready: --max-age does not exist$/,
    },

    { name: "marker older than 10 s", args: at(old), exitCode: 1, line: /^not ready: .*old is too old by 5\d{4} ms/ },
    { name: "marker older than --max-age", args: at(old, "--max-age", "59s"), exitCode: 1, line: /too old by \d+ ms/ },
    {
      name: "marker of 1970",
      args: at(markerOf(dir.at("first"), 0)),
      exitCode: 1,
      line: /too old by 1\d{12} ms: written/,
    },
    {
      name: "marker of 1969",
      args: at(markerOf(dir.at("1969"), -86_400_000)),
      exitCode: 1,
      line: /too old by 1\d{12} ms/,
    },
    { name: "missing marker", args: at(dir.at("none")), exitCode: 1, line: /^not ready: .*none does not exist$/ },
    { name: "dangling link", args: at(dangling), exitCode: 1, line: /does not exist/ },
    { name: "missing directory", args: at(dir.at("no", "dir")), exitCode: 1, line: /does not exist/ },
    {
      name: "marker from the future",
      args: at(marker("later", -60_000)),
      exitCode: 1,
      line: /is [56]\d{4} ms from the future$/,
    },
    { name: "directory", args: at(dir.path), exitCode: 1, line: /is not a regular file$/ },
    { name: "device", args: at("/dev/null"), exitCode: 1, line: /is not a regular file/ },
    { name: "pipe", args: at(pipe), exitCode: 1, line: /is not a regular file/ },
    {
      name: "file in the way",
      args: at(`${fresh}/marker`),
      exitCode: 1,
      line: /at: a file stands where a directory should$/,
    },
    { name: "links in a circle", args: at(circle), exitCode: 1, line: /can't be looked at: too many symbolic links$/ },
    {
      name: "name too long",
      args: at(dir.at("n".repeat(300))),
      exitCode: 1,
      line: /can't be looked at: the name is too long$/,
    },
    {
      name: "path too long",
      args: at("/tmp/.".repeat(1_000)),
      exitCode: 1,
      line: /can't be looked at: the name is too long$/,
    },
    {
      name: "path of 120,000 bytes",
      args: at("/a".repeat(60_000)),
      exitCode: 1,
      line: /(\/a)+ can't be looked at: the name/,
    },
    { name: "path with a line end", args: at(dir.at("a\nb")), exitCode: 1, line: /^not ready: .*a b does not exist$/ },
    {
      name: "path that ends in controls",
      args: at("/a\r\n\x1b\x7f"),
      exitCode: 1,
      line: /^not ready: \/a {2}does not exist$/,
    },
    {
      name: "path with controls beyond ASCII",
      args: at("/a\x80\x9f-\xa0"),
      exitCode: 1,
      line: /^not ready: \/a -\xa0 does not/,
    },
    {
      name: "path beyond ASCII",
      args: at("/é\u2028\u{1f680}"),
      exitCode: 1,
      line: /^not ready: \/é\u2028\u{1f680} does not exist$/u,
    },

    { name: "no arguments", args: [], exitCode: 2, line: /^error: --ready-marker is missing/ },
    { name: "only an age", args: ["--max-age=1s"], exitCode: 2, line: /^error: --ready-marker is missing/ },
    { name: "unknown flag", args: at(fresh, "--maxage", "1s"), exitCode: 2, line: /unknown argument --maxage/ },
    {
      name: "unknown flag with value",
      args: at(fresh, "--ready-marke=1"),
      exitCode: 2,
      line: /argument --ready-marke=1$/,
    },
    { name: "longer flag", args: ["--ready-markers", fresh], exitCode: 2, line: /unknown argument --ready-markers$/ },
    { name: "stray argument", args: at(fresh, "x"), exitCode: 2, line: /unknown argument x/ },
    { name: "empty argument", args: at(fresh, ""), exitCode: 2, line: /^error: unknown argument $/ },
    { name: "two dashes", args: at(fresh, "--"), exitCode: 2, line: /unknown argument --$/ },
    { name: "argument with controls", args: ["-\n-"], exitCode: 2, line: /unknown argument - -$/ },
    { name: "flag without value", args: ["--ready-marker"], exitCode: 2, line: /--ready-marker has no value/ },
    { name: "age without value", args: at(fresh, "--max-age"), exitCode: 2, line: /--max-age has no value/ },
    { name: "flag with empty value", args: ["--ready-marker="], exitCode: 2, line: /--ready-marker has no value/ },
    { name: "flag with empty argument", args: at(""), exitCode: 2, line: /--ready-marker has no value/ },
    { name: "flag twice", args: at(fresh, ...at(fresh)), exitCode: 2, line: /--ready-marker stands there twice/ },
    { name: "age twice", args: ["--max-age=1s", "--max-age=1s"], exitCode: 2, line: /--max-age stands there twice/ },

    { name: "help", args: ["--help"], exitCode: 0, line: /^Usage: epochd-probe/ },
    { name: "short help", args: at(fresh, "-h"), exitCode: 0, line: /^Usage: epochd-probe/ },
    { name: "help after a mistake", args: ["x", "--help"], exitCode: 2, line: /unknown argument x/ },
    { name: "help as a value", args: at("--help"), exitCode: 1, line: /--help does not exist/ },
    { name: "version", args: ["--version"], exitCode: 0, line: /^epochd-probe \d+\.\d+\.\d+/ },

    ...[
      "2m",
      "900s",
      "10m30s",
      "1h0m0s0ms",
      "150.5s",
      "0.5h",
      "700000ms",
      "1440h",
      "99999999999999999999h",
      "700.0000000001s",
    ].map((
      age,
    ): ProbeCase => ({
      name: `old marker, age ${age}`,
      args: at(old, "--max-age", age),
      exitCode: 0,
    })),
    ...[
      ...[
        "0",
        "0s",
        "0.0s",
        "0h0m",
        "10",
        "s",
        "ms",
        "10S",
        "-1s",
        "+1s",
        "1e3s",
        " 10s",
        "10s ",
        "10 s",
        "10s\n",
        "10d",
      ],
      ...[
        "1.s",
        ".5s",
        "1..5s",
        "1,5s",
        "1s1s",
        "1s1m",
        "0.1ms",
        "1.0005s",
        "0x10s",
        "infs",
        "nans",
        "Infinity",
        "10µs",
      ],
      ...["１０s", "10ſ", `${"9".repeat(400)}h`, "1s".repeat(20_000)],
    ].map((age): ProbeCase => ({
      name: `no age: ${JSON.stringify(age.slice(0, 20))}`,
      args: at(fresh, "--max-age", age),
      exitCode: 2,
      line: /^error: --max-age .*: expected a duration over 0 such as 500ms, 10s or 1m30s$/,
    })),

    { name: "unreadable marker", args: at(secret), exitCode: 0, process: { uid: nobody } },
    {
      name: "marker in a closed directory",
      args: at(hidden),
      exitCode: 1,
      line: /^not ready: .*marker can't be looked at: permission denied$/,
      process: { uid: nobody },
    },
    { name: "no stdout", args: at(dir.at("none")), exitCode: 1, process: { shell: 'exec "$@" >&-' } },
    { name: "no stderr", args: ["x"], exitCode: 2, process: { shell: 'exec "$@" 2>&-' } },
    { name: "no streams, ready", args: at(fresh), exitCode: 0, process: { shell: 'exec "$@" <&- >&- 2>&-' } },
    { name: "no streams, help", args: ["--help"], exitCode: 0, process: { shell: 'exec "$@" <&- >&- 2>&-' } },
    { name: "full stdout", args: at(dir.at("none")), exitCode: 1, process: { shell: 'exec "$@" >/dev/full' } },
    {
      // The reader has gone before the probe begins: the pipe's only reading end is closed by then.
      name: "stdout that nobody reads",
      args: at(dir.at("none")),
      exitCode: 1,
      process: {
        shell: `rm -f ${dir.at("broken")}; mkfifo ${dir.at("broken")}; exec 3<>${dir.at("broken")} 4>${
          dir.at("broken")
        } 3<&-; exec "$@" >&4`,
      },
    },
    {
      name: "marker whose name is not UTF-8",
      args: [],
      exitCode: 0,
      process: {
        shell: `cd ${dir.path} && name="$(printf 'caf\\351')" && touch "$name" && exec "$@" --ready-marker "$name"`,
      },
      isBeyondDeno: true,
    },
    {
      name: "missing path that is not UTF-8",
      args: [],
      exitCode: 1,
      line: /^not ready: \/\ufffd\( \ufffd\ufffd\ufffdé\ufffd does not exist$/,
      process: { shell: String.raw`exec "$@" --ready-marker "$(printf '/\303(\302\205\355\240\200\303\251\360')"` },
      isBeyondDeno: true,
    },
  ];
  if (Number.isNaN(Deno.statSync(far).mtime?.getTime() ?? NaN)) {
    cases.push({ name: "marker of the year 3,000,000", args: at(far), exitCode: 1, line: /has no usable time of mod/ });
  }
  return {
    cases,
    refresh() {
      for (const [path, ageMs] of ages) setWritten(path, Date.now() - ageMs);
    },
    async [Symbol.asyncDispose]() {
      await Deno.remove(far.slice(0, far.lastIndexOf("/")), { recursive: true });
      await dir[Symbol.asyncDispose]();
    },
  };
}

function markerOf(path: string, writtenMs: number): string {
  Deno.writeTextFileSync(path, "");
  setWritten(path, writtenMs);
  return path;
}

function setWritten(path: string, unixMs: number): void {
  Deno.utimeSync(path, unixMs / 1000, unixMs / 1000);
}
