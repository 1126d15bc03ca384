// Owns: a request's body as a stream that is read only as fast as it is taken: by its length, or in chunks (RFC 9112, 7.1).
// Must not: bound its size (whoever takes it does), or know what it is.

export interface BodyShape {
  readonly bodyBytes: number;
  readonly isChunked: boolean;
}

/** Undefined at the end of the connection. */
export type ReadSome = () => Promise<Uint8Array | undefined>;

/** A line with a chunk's size, or of the trailer. */
const mostLineBytes = 1_024;
const mostTrailerLines = 64;
const largestChunk = /^[0-9a-fA-F]{1,8}$/;

/** Pieces of the body, then the end; rejects where it breaks off. `first`: what was read beyond the head. */
export async function* readBodyPieces(
  shape: BodyShape,
  first: Uint8Array,
  readSome: ReadSome,
): AsyncGenerator<Uint8Array, void, void> {
  const source = new Source(first, readSome);
  if (!shape.isChunked) return yield* source.take(shape.bodyBytes);
  for (;;) {
    const line = (await source.line()).split(";", 1)[0]!.trim();
    if (!largestChunk.test(line)) throw new Error("the client sent no size of a chunk");
    const size = parseInt(line, 16);
    if (size === 0) break;
    yield* source.take(size);
    if (await source.line() !== "") throw new Error("the client sent a chunk that is longer than it says");
  }
  for (let lines = 0; await source.line() !== "";) {
    if (++lines > mostTrailerLines) throw new Error("the client sent too long a trailer");
  }
}

class Source {
  constructor(private held: Uint8Array, private readonly readSome: ReadSome) {}

  async *take(count: number): AsyncGenerator<Uint8Array, void, void> {
    for (let left = count; left > 0;) {
      if (this.held.length === 0) await this.more();
      const piece = this.held.subarray(0, left);
      this.held = this.held.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** Without its end. */
  async line(): Promise<string> {
    let line = "";
    for (;;) {
      if (this.held.length === 0) await this.more();
      const end = this.held.indexOf(10);
      const part = end < 0 ? this.held : this.held.subarray(0, end);
      line += String.fromCharCode(...part.subarray(0, mostLineBytes));
      this.held = this.held.subarray(end < 0 ? part.length : end + 1);
      if (line.length > mostLineBytes) throw new Error("the client sent too long a line between chunks");
      if (end >= 0) return line.replace(/\r$/, "");
    }
  }

  private async more(): Promise<void> {
    const more = await this.readSome();
    if (more === undefined) throw new Error("the client has gone in the middle of the body");
    this.held = more;
  }
}
