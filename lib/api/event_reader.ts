// Owns: reading records from the text of an event stream. Must not: open the stream.

import type { RecordedFact } from "../observe/record.ts";

/** Feed it pieces of text as they come; it answers with the records that are complete. */
export function eventReader(): (piece: string) => readonly RecordedFact[] {
  let rest = "";
  return (piece) => {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop()!;
    return blocks.flatMap((block) => {
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      return data.length === 0 ? [] : [JSON.parse(data.join("\n")) as RecordedFact];
    });
  };
}
