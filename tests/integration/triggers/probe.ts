// Owns: asking epochd-probe as kubelet does. Must not: judge.

const PROBE = decodeURIComponent(new URL("../../../probe.ts", import.meta.url).pathname);

/** What the probe says (0 ready, 1 not), and why not. */
export async function probe(path: string, maxAge = "5s"): Promise<{ readonly code: number; readonly why: string }> {
  const args = ["run", "-A", "--quiet", PROBE, "--ready-marker", path, "--max-age", maxAge];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "piped" })
    .output();
  const text = new TextDecoder();
  return { code, why: text.decode(stdout) + text.decode(stderr) };
}
