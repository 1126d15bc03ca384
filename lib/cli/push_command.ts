// Owns: `epochd push` and `epochd rollback --binary`: another executable for a service that runs. Must not: judge it.

import { createHash } from "node:crypto";
import { type Client, connectTo, type EventStream, type SwitchAnswer } from "../api/client.ts";
import { oneLine, shortDigest } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { chooseService, seeThrough, tellPlan } from "./restart_command.ts";
import { painter, type Terminal } from "./terminal.ts";

export interface SwitchCommandOptions {
  readonly socket: string;
  readonly service?: string;
  readonly wait?: "live" | "drained";
  readonly force: boolean;
  /** Without a handoff: connections end. */
  readonly drained: boolean;
  readonly json: boolean;
}

export interface PushOptions extends SwitchCommandOptions {
  /** `-`: standard input. */
  readonly file: string;
  readonly sha256?: string;
  /** Of a file; absent: FILE.minisig where that is there. */
  readonly signature?: string;
}

interface Source {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly sizeBytes?: number;
  readonly sha256?: string;
  readonly signature?: string;
  close(): void;
}

const bufferBytes = 262_144;
/** More is no signature file. */
const mostSignatureBytes = 4_096;

export async function pushCommand(options: PushOptions, terminal: Terminal): Promise<number> {
  const source = await openSource(options);
  if (typeof source === "string") {
    terminal.err(`error: ${oneLine(source)}\n`);
    return exitCode.usage;
  }
  try {
    return await withService(options, terminal, async (client, service) => {
      const progress = showSent(terminal, options.json, source.sizeBytes);
      const answer = await client.push(service, {
        pieces: progress.count(source.pieces),
        force: options.force,
        drained: options.drained,
        ...(source.sizeBytes === undefined ? {} : { sizeBytes: source.sizeBytes }),
        ...(source.sha256 === undefined ? {} : { sha256: source.sha256 }),
        ...(source.signature === undefined ? {} : { signature: source.signature }),
      });
      progress.end();
      return answer;
    });
  } catch (error) {
    // Of reading, since a connection's are answers.
    terminal.err(`error: read ${options.file}: ${oneLine(messageOf(error))}\n`);
    return exitCode.refused;
  } finally {
    source.close();
  }
}

export async function rollBackBinaryCommand(
  options: SwitchCommandOptions & { readonly to?: string },
  terminal: Terminal,
): Promise<number> {
  const { to, force, drained } = options;
  if (to !== undefined && !/^([0-9a-f]{4,64}|installed)$/.test(to)) {
    terminal.err(`error: --to ${oneLine(to)}: expected 4 to 64 digits of a sha256 in lower case, or installed\n`);
    return exitCode.usage;
  }
  return await withService(
    options,
    terminal,
    (client, service) => client.rollBackBinary(service, { force, drained, ...(to === undefined ? {} : { to }) }),
  );
}

async function withService(
  options: SwitchCommandOptions,
  terminal: Terminal,
  act: (client: Client, service: string) => ReturnType<Client["push"]>,
): Promise<number> {
  const client = connectTo(options.socket);
  const chosen = await chooseService(client, options, terminal);
  if (typeof chosen === "number") return chosen;
  const no = options.drained ? await tellPlan(client, chosen.service, options, terminal) : undefined;
  if (no !== undefined) return no;
  // Subscribed before the request, or its first steps would be missed.
  const events = options.wait === undefined ? undefined : await client.events();
  if (events !== undefined && events.kind !== "ok") return reportFailure(events, terminal, options.json);
  try {
    const answer = await act(client, chosen.service);
    if (answer.kind !== "ok") return reportFailure(answer, terminal, options.json);
    return await report(answer.value, options, events?.value, terminal);
  } finally {
    events?.value.close();
  }
}

async function report(
  answer: SwitchAnswer,
  { socket, json, wait, drained }: SwitchCommandOptions,
  events: EventStream | undefined,
  terminal: Terminal,
): Promise<number> {
  const { service, outcome, request, digest, version } = answer;
  const what = `${digest === undefined ? "the installed executable" : shortDigest(digest)}${
    version === undefined ? "" : ` (${version})`
  }`;
  if (request === undefined || outcome === "unchanged" || wait === undefined || events === undefined) {
    const said = outcome === "unchanged"
      ? `already current: service ${service} runs ${what}`
      : `accepted: service ${service}, ${what}, request ${request}`;
    terminal.out(json ? `${JSON.stringify(answer)}\n` : `${said}\n`);
    return exitCode.ok;
  }
  if (!json) terminal.out(`${painter(terminal.colour)("dim", "checked")}: ${what} is current, on trial\n`);
  const also = { ...(digest === undefined ? {} : { digest }), ...(version === undefined ? {} : { version }) };
  return await seeThrough(service, request, wait, { socket, json, drained, events, also }, terminal);
}

/** Or what is wrong with what was given. */
async function openSource(options: PushOptions): Promise<Source | string> {
  const { file: path, sha256 } = options;
  if (sha256 !== undefined && !/^[0-9a-fA-F]{64}$/.test(sha256)) {
    return `--sha256 ${sha256}: expected 64 hexadecimal digits`;
  }
  const signature = await readSignature(options);
  if (typeof signature === "string") return signature;
  const given = {
    ...(sha256 === undefined ? {} : { sha256: sha256.toLowerCase() }),
    ...(signature === undefined ? {} : { signature: signature.text }),
  };
  if (path === "-") {
    if (Deno.stdin.isTerminal()) return "push -: expected the executable on standard input, which is a terminal";
    return { ...given, pieces: Deno.stdin.readable, close: () => {} };
  }
  let file: Deno.FsFile;
  let sizeBytes: number;
  try {
    // Before the open, which would wait for the writer of a FIFO.
    if (!(await Deno.stat(path)).isFile) return `push ${path}: is not a regular file, expected Envoy's executable`;
    file = await Deno.open(path);
    sizeBytes = (await file.stat()).size;
  } catch (error) {
    return `push ${path}: ${messageOf(error)}`;
  }
  if (sizeBytes === 0) {
    file.close();
    return `push ${path}: is empty, expected Envoy's executable`;
  }
  const close = () => file.close();
  try {
    return { ...given, sha256: given.sha256 ?? await digestOf(file), sizeBytes, pieces: piecesOf(file), close };
  } catch (error) {
    close();
    return `push ${path}: ${messageOf(error)}`;
  }
}

async function readSignature(
  { file, signature }: PushOptions,
): Promise<{ readonly text: string } | undefined | string> {
  const path = signature ?? `${file}.minisig`;
  if (signature === undefined && file === "-") return undefined;
  try {
    const info = await Deno.stat(path);
    if (!info.isFile || info.size > mostSignatureBytes) return `${path}: expected a minisign signature file`;
    return { text: await Deno.readTextFile(path) };
  } catch (error) {
    if (signature === undefined && error instanceof Deno.errors.NotFound) return undefined;
    return `read the signature ${path}: ${messageOf(error)}`;
  }
}

async function digestOf(file: Deno.FsFile): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of piecesOf(file)) hash.update(piece);
  await file.seek(0, Deno.SeekMode.Start);
  return hash.digest("hex");
}

async function* piecesOf(file: Deno.FsFile): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(bufferBytes);
  for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
    yield buffer.slice(0, count);
  }
}

/** Bytes on their way, on a terminal. */
function showSent(terminal: Terminal, json: boolean, sizeBytes: number | undefined) {
  const shows = terminal.interactive && !json;
  const megabytes = (bytes: number) => (bytes / 1_000_000).toFixed(1);
  let shownMs = -Infinity;
  return {
    async *count(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      let sent = 0;
      for await (const piece of pieces) {
        yield piece;
        sent += piece.length;
        if (!shows || performance.now() - shownMs < 100) continue;
        shownMs = performance.now();
        terminal.out(
          `\r\x1b[K... ${megabytes(sent)} MB${sizeBytes === undefined ? "" : ` of ${megabytes(sizeBytes)}`}`,
        );
      }
      if (shows) terminal.out("\r\x1b[K... checking");
    },
    end: () => shows && terminal.out("\r\x1b[K"),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
