// Owns: lines over time as an SVG. Must not: know what they stand for.

export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  /** Where the axis ends at least. */
  readonly least?: number;
}

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const WIDTH = 900;
const PANEL = 170;
const LEFT = 70;
const RIGHT = 20;
const TOP = 28;
const BOTTOM = 24;
const COLOURS = ["#1565c0", "#c62828", "#2e7d32", "#6a1b9a"];

export function plot(panels: readonly Panel[], xUnit: string): string {
  const mostX = Math.max(1, ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([x]) => x))));
  const drawn = panels.map((panel, at) => drawPanel(panel, at * PANEL, mostX, xUnit));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${
      panels.length * PANEL
    }" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...drawn.flat(),
    "</svg>",
    "",
  ].join("\n");
}

function drawPanel({ title, unit, lines, least = 0 }: Panel, top: number, mostX: number, xUnit: string): string[] {
  const mostY = roundUp(Math.max(least, 1e-9, ...lines.flatMap(({ points }) => points.map(([, y]) => y))));
  const [width, height] = [WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM];
  const x = (value: number) => (LEFT + width * value / mostX).toFixed(1);
  const y = (value: number) => (top + TOP + height * (1 - value / mostY)).toFixed(1);
  const grid = [0, 0.5, 1].map((share) => {
    const at = y(share * mostY);
    return `<path d="M${LEFT} ${at}H${WIDTH - RIGHT}" stroke="#ddd"/>` +
      `<text x="${LEFT - 6}" y="${at}" text-anchor="end" dominant-baseline="middle">${number(share * mostY)}</text>`;
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    `<text x="${x(share * mostX)}" y="${top + PANEL - 8}" text-anchor="${share === 1 ? "end" : "middle"}">${
      number(share * mostX)
    }${share === 1 ? ` ${xUnit}` : ""}</text>`
  );
  const paths = lines.map(({ points }, at) =>
    `<polyline fill="none" stroke="${colour(at)}" points="${
      points.map((point) => `${x(point[0])},${y(point[1])}`).join(" ")
    }"/>`
  );
  const names = lines.map(({ name }, at) =>
    `<text x="${WIDTH - RIGHT - 110 * (lines.length - 1 - at)}" y="${top + 16}" text-anchor="end" fill="${
      colour(at)
    }">${escape(name)}</text>`
  );
  return [
    `<text x="${LEFT}" y="${top + 16}" font-weight="bold">${escape(title)} (${escape(unit)})</text>`,
    ...grid,
    ...ticks,
    ...paths,
    ...names,
  ];
}

function colour(at: number): string {
  return COLOURS[at % COLOURS.length]!;
}

/** To the next 1, 2 or 5 of its power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((step) => step * power >= value * (1 - 1e-9)) ?? 10) * power;
}

function number(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
