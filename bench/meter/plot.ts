// Owns: the picture of a scenario: throughput and latency over time, changes and drops marked; SVG for light and dark.
// Must not: measure, or add anything up.
import type { Window } from "./timeline.ts";

export interface PlotMark {
  readonly atMs: number;
  /** A new Envoy is LIVE, an old one has ended, or something was dropped. */
  readonly kind: "live" | "gone" | "drop";
}

export interface Plot {
  readonly title: string;
  readonly durationMs: number;
  readonly windows: readonly Window[];
  /** Since the begin, as the windows. */
  readonly marks: readonly PlotMark[];
}

const WIDTH = 960;
const LEFT = 64;
const RIGHT = 16;
const INNER = WIDTH - LEFT - RIGHT;
const RATE = { top: 56, height: 110 };
const LATENCY = { top: 202, height: 190 };
const DROPS_TOP = LATENCY.top + LATENCY.height + 8;
const HEIGHT = DROPS_TOP + 58;

const STYLE = `
svg { font: 12px system-ui, "DejaVu Sans", sans-serif; background: #ffffff }
text { fill: #3d444d } .title { font-size: 15px; font-weight: 600; fill: #1f2328 }
.grid { stroke: #d1d9e0; stroke-width: 1 } .frame { fill: none; stroke: #8c959f; stroke-width: 1 }
path { fill: none; stroke-width: 1.5; stroke-linejoin: round }
.rate { stroke: #0969da } .p50 { stroke: #1a7f37 } .p99 { stroke: #bc4c00 } .max { stroke: #8250df; stroke-width: 1 }
.live { stroke: #57606a; stroke-width: 1 } .gone { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 2 3 }
.drop { stroke: #cf222e; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117 } text { fill: #b7bdc8 } .title { fill: #f0f6fc }
  .grid { stroke: #2b313a } .frame { stroke: #656c76 }
  .rate { stroke: #58a6ff } .p50 { stroke: #3fb950 } .p99 { stroke: #f0883e } .max { stroke: #bc8cff }
  .live { stroke: #9198a1 } .gone { stroke: #656c76 } .drop { stroke: #ff7b72 }
}`;

export function plotSvg({ title, durationMs, windows, marks }: Plot): string {
  const x = (ms: number) => LEFT + INNER * Math.min(1, Math.max(0, ms / Math.max(1, durationMs)));
  const rateTop = niceCeiling(Math.max(1, ...windows.map(({ perSecond }) => perSecond)));
  const rate = (value: number) => RATE.top + RATE.height * (1 - value / rateTop);
  const latencies = windows.flatMap(({ p50Ms, maxMs }) => [p50Ms ?? 1, maxMs ?? 1]);
  const [low, high] = [decade(Math.min(1, ...latencies), Math.floor), decade(Math.max(1, ...latencies), Math.ceil)];
  const latency = (ms: number) =>
    LATENCY.top + LATENCY.height * (1 - Math.log10(Math.max(ms, low) / low) / Math.max(1, Math.log10(high / low)));
  const middle = (window: Window) => x(window.fromMs + (windows[1]?.fromMs ?? 0) / 2);
  const line = (name: string, value: (window: Window) => number | undefined, y: (value: number) => number) =>
    `<path class="${name}" d="${pathOf(windows, middle, value, y)}"/>`;
  const parts = [
    `<text class="title" x="${LEFT}" y="22">${escaped(title)}</text>`,
    ...legend([["rate", "requests/s"], ["p50", "p50"], ["p99", "p99"], ["max", "slowest"]], [
      ["live", "new Envoy LIVE"],
      ["gone", "old Envoy gone"],
      ["drop", "drop"],
    ]),
    ...[0, rateTop / 2, rateTop].map((value) => gridLine(rate(value), String(value))),
    ...decades(low, high).map((ms) => gridLine(latency(ms), `${ms} ms`)),
    ...seconds(durationMs).map((s) =>
      `<text x="${fixed(x(s * 1000))}" y="${DROPS_TOP + 34}" text-anchor="middle">${s} s</text>`
    ),
    ...marks.filter(({ kind }) => kind !== "drop").map(({ atMs, kind }) =>
      upright(kind, x(atMs), RATE.top, LATENCY.top + LATENCY.height)
    ),
    line("rate", ({ perSecond }) => perSecond, rate),
    line("max", ({ maxMs }) => maxMs, latency),
    line("p99", ({ p99Ms }) => p99Ms, latency),
    line("p50", ({ p50Ms }) => p50Ms, latency),
    ...dropTicks(marks.filter(({ kind }) => kind === "drop").map(({ atMs }) => x(atMs))),
    ...[RATE, LATENCY].map(({ top, height }) =>
      `<rect class="frame" x="${LEFT}" y="${top}" width="${INNER}" height="${height}"/>`
    ),
  ];
  const box = `width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}"`;
  const open = `<svg xmlns="http://www.w3.org/2000/svg" ${box} role="img" aria-label="${escaped(title)}">`;
  return `${open}\n<style>${STYLE}\n</style>\n${parts.join("\n")}\n</svg>\n`;
}

/** Where nothing was answered the line is broken. */
function pathOf(
  windows: readonly Window[],
  x: (window: Window) => number,
  value: (window: Window) => number | undefined,
  y: (value: number) => number,
): string {
  let path = "";
  let pen: "M" | "L" = "M";
  for (const window of windows) {
    const at = value(window);
    if (at !== undefined) path += `${pen}${fixed(x(window))} ${fixed(y(at))}`;
    pen = at === undefined ? "M" : "L";
  }
  return path;
}

function legend(
  lines: readonly (readonly [string, string])[],
  marks: readonly (readonly [string, string])[],
): string[] {
  let at = LEFT;
  return [...lines, ...marks].flatMap(([name, text]) => {
    const left = at;
    at += 40 + 7 * text.length;
    const isLine = lines.some(([line]) => line === name);
    const key = isLine
      ? `<path class="${name}" d="M${left} 40h18"/>`
      : `<line class="${name}" x1="${left + 9}" x2="${left + 9}" y1="33" y2="47"/>`;
    return [key, `<text x="${left + 24}" y="44">${text}</text>`];
  });
}

/** Thousands of drops in one place are one tick. */
function dropTicks(places: readonly number[]): string[] {
  return [...new Set(places.map((place) => fixed(place)))].map((place) =>
    upright("drop", Number(place), DROPS_TOP, DROPS_TOP + 14)
  );
}

function upright(name: string, x: number, top: number, bottom: number): string {
  return `<line class="${name}" x1="${fixed(x)}" x2="${fixed(x)}" y1="${top}" y2="${bottom}"/>`;
}

function gridLine(y: number, label: string): string {
  return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${fixed(y)}" y2="${fixed(y)}"/>` +
    `<text x="${LEFT - 8}" y="${fixed(y + 4)}" text-anchor="end">${label}</text>`;
}

function niceCeiling(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((step) => step * unit).find((top) => top >= value * 1.05) ?? 20 * unit;
}

function decade(value: number, round: (value: number) => number): number {
  return Number((10 ** round(Math.log10(Math.max(value, 0.001)))).toPrecision(1));
}

function decades(low: number, high: number): number[] {
  const count = Math.max(1, Math.round(Math.log10(high / low)));
  return Array.from({ length: count + 1 }, (_, at) => Number((low * 10 ** at).toPrecision(1)));
}

function seconds(durationMs: number): number[] {
  const step = [1, 2, 5, 10, 20, 60, 120, 300].find((step) => durationMs / 1000 / step <= 14) ?? 600;
  return Array.from({ length: Math.floor(durationMs / 1000 / step) + 1 }, (_, at) => at * step);
}

function fixed(value: number): string {
  return String(Number(value.toFixed(1)));
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
