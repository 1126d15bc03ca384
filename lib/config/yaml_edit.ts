// Owns: changing single places of a YAML text; comments, key order and everything else stay as they were written.
// Must not: touch files, or know what the places mean.

import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  type Pair,
  parseDocument,
  stringify,
} from "yaml";
import type { Edit } from "./edits.ts";

/** The text with the edits in it, or why that can't be done. */
export function editYaml(text: string, edits: readonly Edit[]): { readonly text: string } | { readonly why: string } {
  const document = parseDocument(text);
  if (document.errors.length > 0) return { why: document.errors[0]!.message.split("\n", 1)[0]! };
  const spliced = splice(document, text, edits);
  try {
    for (const { path, value } of edits) {
      if (value === undefined) document.deleteIn(path);
      else setIn(document, path, value);
    }
    const wanted: unknown = document.toJS();
    if (spliced !== undefined && saysTheSame(spliced, wanted)) return { text: spliced };
    return { text: document.toString({ lineWidth: 0, ...styleOf(text) }) };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

interface Cut {
  readonly from: number;
  readonly to: number;
  readonly by: string;
}

/** Where every edit is a place of the text, not a byte beside them changes; undefined where one is not. */
function splice(document: Document, text: string, edits: readonly Edit[]): string | undefined {
  const cuts: Cut[] = [];
  for (const { path, value } of edits) {
    const cut = cutFor(document, text, path, value);
    if (cut === undefined) return undefined;
    cuts.push(cut);
  }
  // From the end, so that places before keep their offsets; of two at one place, the later first.
  return cuts.map((cut, index) => ({ cut, index }))
    .toSorted((a, b) => b.cut.from - a.cut.from || b.index - a.index)
    .reduce((whole, { cut: { from, to, by } }) => whole.slice(0, from) + by + whole.slice(to), text);
}

function cutFor(document: Document, text: string, path: readonly string[], value: unknown): Cut | undefined {
  const map = document.getIn(path.slice(0, -1), true);
  if (!isMap(map) || map.flow === true || map.items.length === 0) return undefined;
  const pair = map.items.find(({ key }) => isScalar(key) && key.value === path.at(-1));
  const first = map.items[0]!.key;
  if (!isScalar(first) || !first.range) return undefined;
  const indent = first.range[0] - lineStart(text, first.range[0]);
  if (value !== undefined && pair !== undefined) return replaceScalar(text, pair, value);
  if (value !== undefined) {
    const end = endOf(map.items.at(-1)!);
    if (end === undefined) return undefined;
    const lines = lineOf(path.at(-1)!, value).split("\n").map((line) => " ".repeat(indent) + line).join("\n");
    const at = lineEnd(text, end);
    return text[at] === "\n"
      ? { from: at + 1, to: at + 1, by: `${lines}\n` }
      : { from: at, to: at, by: `\n${lines}\n` };
  }
  // The last one to go would leave a null behind.
  if (pair === undefined || map.items.length === 1 || !isScalar(pair.key) || !pair.key.range) return undefined;
  const end = endOf(pair);
  if (end === undefined) return undefined;
  return { from: lineStart(text, pair.key.range[0]), to: Math.min(text.length, lineEnd(text, end) + 1), by: "" };
}

function replaceScalar(text: string, { value: node }: Pair, value: unknown): Cut | undefined {
  if (!isScalar(node) || !node.range || node.anchor !== undefined) return undefined;
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
  const [from, to] = node.range;
  const by = stringify(value, { lineWidth: 0 }).trimEnd();
  return from === to || by.includes("\n") || text.slice(from, to).includes("\n") ? undefined : { from, to, by };
}

/** Lists stand on one line, as far as they hold single values. */
function lineOf(key: string, value: unknown): string {
  const shown = Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : undefined;
  const name = stringify(key).trimEnd();
  return shown === undefined ? stringify({ [key]: value }, { lineWidth: 0 }).trimEnd() : `${name}: ${shown}`;
}

/** Where what a pair says ends; comments and empty lines behind it are not its own. */
function endOf({ key, value }: Pair): number | undefined {
  if (isCollection(value) && value.flow !== true && value.items.length > 0) {
    const last = value.items.at(-1);
    return isMap(value) ? endOf(last as Pair) : endOf({ key: last, value: last } as Pair);
  }
  const node = isNode(value) && value.range && !(isScalar(value) && value.range[0] === value.range[1]) ? value : key;
  if (isMap(node) && node.flow !== true) return endOf(node.items.at(-1)!);
  if ((isNode(node) || isAlias(node)) && node.range) return node.range[1];
  return undefined;
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1;
}

/** At the line's end, or at the end of the text. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at > 0 && text[at - 1] === "\n" ? at - 1 : at);
  return end < 0 ? text.length : end;
}

function saysTheSame(text: string, wanted: unknown): boolean {
  const parsed = parseDocument(text);
  return parsed.errors.length === 0 && JSON.stringify(parsed.toJS()) === JSON.stringify(wanted);
}

function setIn(document: Document, path: readonly string[], value: unknown): void {
  for (let length = 0; length < path.length; length++) {
    const way = path.slice(0, length);
    // `log:` with nothing behind it is a null that nothing can be put into.
    if (!isCollection(document.getIn(way, true))) document.setIn(way, document.createNode({}));
  }
  document.setIn(path, typeof value === "object" ? document.createNode(value) : value);
}

/** As the text does it already. */
function styleOf(text: string): { readonly indent?: number; readonly indentSeq: boolean } {
  const [, indent] = /^[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n(?:[^\S\n]*(?:#[^\n]*)?\n)*( {1,8})\S/m.exec(text) ?? [];
  const isFlush = /^( *)[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n\1- /m.test(text);
  return { indentSeq: !isFlush, ...(indent === undefined ? {} : { indent: indent.length }) };
}
