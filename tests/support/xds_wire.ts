// Owns: as much of protobuf's wire format and of gRPC's framing as an xDS server in a test needs. Must not know a message.

/** What a field may hold; a list is a repeated field, undefined is left out. */
export type Value = string | number | boolean | Uint8Array | readonly Value[] | undefined;

const VARINT = 0;
const BYTES = 2;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A message of these fields, by field number. Numbers are unsigned integers, booleans too. */
export function message(fields: Readonly<Record<number, Value>>): Uint8Array<ArrayBuffer> {
  const parts = Object.entries(fields).flatMap(([number, value]) => field(Number(number), value));
  return joined(parts);
}

function field(number: number, value: Value): Uint8Array[] {
  if (value === undefined) return [];
  if (typeof value === "number" || typeof value === "boolean") {
    return [varint(number * 8 + VARINT), varint(Number(value))];
  }
  if (typeof value === "string") return field(number, encoder.encode(value));
  if (value instanceof Uint8Array) return [varint(number * 8 + BYTES), varint(value.length), value];
  return value.flatMap((one) => field(number, one));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return Uint8Array.from([...bytes, value]);
}

/** The length-delimited fields of a message: texts and messages. Numbers are skipped. */
export function textFields(bytes: Uint8Array): ReadonlyMap<number, readonly Uint8Array[]> {
  const found = new Map<number, Uint8Array[]>();
  let at = 0;
  const next = () => {
    let value = 0;
    for (let scale = 1;; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("a protobuf message that ends too early");
      value += byte % 128 * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = next();
    const wire = tag % 8;
    if (wire === VARINT) next();
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === BYTES) {
      const length = next();
      const number = Math.floor(tag / 8);
      found.set(number, [...found.get(number) ?? [], bytes.subarray(at, at + length)]);
      at += length;
    } else throw new Error(`protobuf wire type ${wire}`);
  }
  return found;
}

export function text(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : decoder.decode(bytes);
}

/** A message as gRPC sends it: one byte that says "not compressed", four of length. */
export function frame(payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(5);
  new DataView(head.buffer).setUint32(1, payload.length);
  return joined([head, payload]);
}

/** Takes bytes as they come and gives the messages that are whole. */
export class Frames {
  #rest = new Uint8Array(0);

  take(bytes: Uint8Array): Uint8Array[] {
    this.#rest = joined([this.#rest, bytes]);
    const whole: Uint8Array[] = [];
    while (this.#rest.length >= 5) {
      const length = new DataView(this.#rest.buffer, this.#rest.byteOffset).getUint32(1);
      if (this.#rest.length < 5 + length) break;
      whole.push(this.#rest.slice(5, 5 + length));
      this.#rest = this.#rest.slice(5 + length);
    }
    return whole;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
