// Owns: where commands write to and whether colour and redrawing suit it. Must not: be used by a supervisor at work
// (its log never blocks; these writes may).

export interface Terminal {
  readonly interactive: boolean;
  readonly colour: boolean;
  /** Nobody reads what is written any more (`| head -1`). */
  readonly isGone?: boolean;
  out(text: string): void;
  err(text: string): void;
}

/** The output was taken by nobody: a full disk, an I/O error. */
export class OutputError extends Error {
  override readonly name = "OutputError";
}

const encoder = new TextEncoder();

export function openTerminal(): Terminal {
  const interactive = Deno.stdout.isTerminal();
  let isGone = false;
  return {
    interactive,
    get isGone() {
      return isGone;
    },
    colour: interactive && (Deno.env.get("NO_COLOR") ?? "") === "" && Deno.env.get("TERM") !== "dumb",
    out: (text) => void (isGone = !writeAll(Deno.stdout, text) || isGone),
    err: (text) => void writeAll(Deno.stderr, text),
  };
}

/** False: nobody reads. */
function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): boolean {
  const bytes = encoder.encode(text);
  try {
    for (let done = 0; done < bytes.length;) done += stream.writeSync(bytes.subarray(done));
    return true;
  } catch (error) {
    // `epochd status | head -1` is no failure.
    if (error instanceof Deno.errors.BrokenPipe) return false;
    throw new OutputError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

export type Colour = "bold" | "dim" | "red" | "green" | "yellow";
const codes: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

export type Paint = (colour: Colour, text: string) => string;

export function painter(colour: boolean): Paint {
  return (name, text) => colour ? `\x1b[${codes[name]}m${text}\x1b[0m` : text;
}
