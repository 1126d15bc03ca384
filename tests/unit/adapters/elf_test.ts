import { strictEqual } from "node:assert/strict";
import { elfSize, foreignHeader } from "../../../lib/adapters/elf.ts";

function header(machine: number, sections = { at: 4096, size: 64, count: 10 }): Uint8Array {
  const bytes = new Uint8Array(64);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  const view = new DataView(bytes.buffer);
  view.setUint16(18, machine, true);
  view.setBigUint64(40, BigInt(sections.at), true);
  view.setUint16(58, sections.size, true);
  view.setUint16(60, sections.count, true);
  return bytes;
}

Deno.test("foreignHeader: takes this machine's ELF and a script", () => {
  strictEqual(foreignHeader(header(62), "x86_64"), undefined);
  strictEqual(foreignHeader(header(183), "aarch64"), undefined);
  strictEqual(foreignHeader(new TextEncoder().encode("#!/bin/sh\n"), "x86_64"), undefined);
});

Deno.test("foreignHeader: names both architectures", () => {
  strictEqual(foreignHeader(header(183), "x86_64"), "built for aarch64, this machine is x86_64");
  strictEqual(foreignHeader(header(243), "x86_64"), "built for ELF machine 243, this machine is x86_64");
});

Deno.test("foreignHeader: refuses text and what is too short", () => {
  strictEqual(foreignHeader(new TextEncoder().encode("hello, I am twenty bytes"), "x86_64"), "not an ELF executable");
  strictEqual(foreignHeader(header(62).subarray(0, 10), "x86_64"), "not an ELF executable");
  strictEqual(foreignHeader(new Uint8Array(0), "x86_64"), "not an ELF executable");
});

Deno.test("foreignHeader: reads a view into a larger buffer", () => {
  const outer = new Uint8Array(100);
  outer.set(header(183), 7);
  strictEqual(foreignHeader(outer.subarray(7, 71), "x86_64"), "built for aarch64, this machine is x86_64");
});

Deno.test("elfSize: ends with the section headers, of this very Deno too", () => {
  strictEqual(elfSize(header(62)), 4096 + 640);
  using file = Deno.openSync(Deno.execPath());
  const bytes = new Uint8Array(64);
  file.readSync(bytes);
  const size = elfSize(bytes);
  strictEqual(size > 1_000_000 && size <= file.statSync().size, true, `${size}`);
});

Deno.test("elfSize: says nothing about scripts and short files", () => {
  strictEqual(
    elfSize(new TextEncoder().encode("#!/bin/sh\nexec sleep 1000000000000000000000000000000000000000000000")),
    0,
  );
  strictEqual(elfSize(header(62).subarray(0, 30)), 0);
});
