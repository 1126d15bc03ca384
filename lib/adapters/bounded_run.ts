// Owns: running a short-lived program to its end or its bound, and what it printed. Must not: know what it is for.

export interface Run {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export type Ran =
  | { readonly kind: "ended"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "timeout" }
  | { readonly kind: "aborted" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Each stream's last bytes that are kept. */
const KEPT_BYTES = 65_536;

/** Always reaps the program before it resolves; SIGKILL, since nothing of it is worth an orderly end. */
export async function runBounded(path: string, args: readonly string[], { timeoutMs, signal }: Run): Promise<Ran> {
  if (signal.aborted) return { kind: "aborted" };
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(path, { args: [...args], stdin: "null", stdout: "piped", stderr: "piped", detached: true })
      .spawn();
  } catch (error) {
    return { kind: "failed", error };
  }
  let cut: "timeout" | "aborted" | undefined;
  const end = (why: "timeout" | "aborted") => {
    cut ??= why;
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
  };
  const onAbort = () => end("aborted");
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => end("timeout"), timeoutMs);
  const [stdout, stderr] = [new Tail(child.stdout), new Tail(child.stderr)];
  try {
    const { code } = await child.status;
    // A grandchild may hold the pipes open for ever: what is there now is taken.
    await Promise.all([stdout.end(), stderr.end()]);
    return cut === undefined ? { kind: "ended", code, stdout: stdout.text(), stderr: stderr.text() } : { kind: cut };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

class Tail {
  private kept = new Uint8Array(0);
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly done: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.reader = stream.getReader();
    this.done = this.pump();
  }

  async end(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([this.done, new Promise<void>((resolve) => timer = setTimeout(resolve, 200))]);
    clearTimeout(timer);
    await this.reader.cancel().catch(() => {});
    await this.done;
  }

  text(): string {
    return new TextDecoder().decode(this.kept);
  }

  private async pump(): Promise<void> {
    try {
      for (;;) {
        const { value } = await this.reader.read();
        if (value === undefined) return;
        const whole = new Uint8Array(this.kept.length + value.length);
        whole.set(this.kept);
        whole.set(value, this.kept.length);
        this.kept = whole.subarray(Math.max(0, whole.length - KEPT_BYTES));
      }
    } catch {
      // Cancelled, or the pipe broke: what came counts.
    }
  }
}
