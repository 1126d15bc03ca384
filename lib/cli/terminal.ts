// Owns: where commands write to and whether colour and redrawing suit it. Must not: be used by a supervisor at work
// (its log never blocks; these writes may).

export interface Terminal {
  readonly interactive: boolean;
  readonly colour: boolean;
  out(text: string): void;
  err(text: string): void;
}

const encoder = new TextEncoder();

export function openTerminal(): Terminal {
  const interactive = Deno.stdout.isTerminal();
  return {
    interactive,
    colour: interactive && (Deno.env.get("NO_COLOR") ?? "") === "" && Deno.env.get("TERM") !== "dumb",
    out: (text) => writeAll(Deno.stdout, text),
    err: (text) => writeAll(Deno.stderr, text),
  };
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  const bytes = encoder.encode(text);
  try {
    for (let done = 0; done < bytes.length;) done += stream.writeSync(bytes.subarray(done));
  } catch (error) {
    // `epochd status | head -1` is no failure.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}

export type Colour = "bold" | "dim" | "red" | "green" | "yellow";
const codes: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

export type Paint = (colour: Colour, text: string) => string;

export function painter(colour: boolean): Paint {
  return (name, text) => colour ? `\x1b[${codes[name]}m${text}\x1b[0m` : text;
}
