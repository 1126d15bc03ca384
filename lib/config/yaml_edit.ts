// Owns: changing single places of a YAML text; comments, key order and everything else stay as they were written.
// Must not: touch files, or know what the places mean.

import { type Document, isCollection, isScalar, parseDocument, stringify } from "yaml";
import type { Edit } from "./edits.ts";

/** The text with the edits in it, or why that can't be done. */
export function editYaml(text: string, edits: readonly Edit[]): { readonly text: string } | { readonly why: string } {
  const document = parseDocument(text);
  if (document.errors.length > 0) return { why: document.errors[0]!.message.split("\n", 1)[0]! };
  const replaced = replaceScalars(document, text, edits);
  if (replaced !== undefined) return { text: replaced };
  try {
    for (const { path, value } of edits) {
      if (value === undefined) document.deleteIn(path);
      else setIn(document, path, value);
    }
    return { text: document.toString({ lineWidth: 0, ...styleOf(text) }) };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

/** Where only plain values on one line change, not a byte beside them does; undefined where more must change. */
function replaceScalars(document: Document, text: string, edits: readonly Edit[]): string | undefined {
  const cuts: { readonly from: number; readonly to: number; readonly by: string }[] = [];
  for (const { path, value } of edits) {
    const node = document.getIn(path, true);
    if (!isScalar(node) || node.range === undefined || node.range === null || node.anchor !== undefined) return undefined;
    if (node.type === "BLOCK_FOLDED" || node.type === "BLOCK_LITERAL") return undefined;
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
    const [from, to] = node.range;
    const by = stringify(value, { lineWidth: 0 }).trimEnd();
    if (from === to || by.includes("\n") || text.slice(from, to).includes("\n")) return undefined;
    cuts.push({ from, to, by });
  }
  return cuts.toSorted((a, b) => b.from - a.from)
    .reduce((whole, { from, to, by }) => whole.slice(0, from) + by + whole.slice(to), text);
}

function setIn(document: Document, path: readonly string[], value: unknown): void {
  for (let length = 0; length < path.length; length++) {
    const way = path.slice(0, length);
    // `log:` with nothing behind it is a null that nothing can be put into.
    if (!isCollection(document.getIn(way, true))) document.setIn(way, document.createNode({}));
  }
  const isPlain = typeof value !== "object";
  document.setIn(path, isPlain ? value : document.createNode(value));
}

/** As the text does it already. */
function styleOf(text: string): { readonly indent?: number; readonly indentSeq: boolean } {
  const [, indent] = /^[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n(?:[^\S\n]*(?:#[^\n]*)?\n)*( {1,8})\S/m.exec(text) ?? [];
  const isFlush = /^( *)[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n\1- /m.test(text);
  return { indentSeq: !isFlush, ...(indent === undefined ? {} : { indent: indent.length }) };
}
