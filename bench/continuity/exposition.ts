// Owns: reading Prometheus' text format. Must not: interpret labels; a series is known by all that stands before its value.

export function parseExposition(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*(?:\{.*\})?)[ \t]+(\S+)/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) found.set(match[1], numberOf(match[2]));
  }
  return found;
}

function numberOf(text: string): number {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}
