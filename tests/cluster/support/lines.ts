// Owns: text as lines. Must not: interpret them.

/** Whole lines without their ends; an unfinished last one is let go. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(text, controller) {
        const lines = (rest + text).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (line !== "") controller.enqueue(line);
      },
    });
  }
}

export function linesOf(stream: ReadableStream<Uint8Array>): ReadableStream<string> {
  return stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
}
