// Owns: "did you mean". Must not: decide what is right.

/** The candidate with the fewest typing errors between it and `word`, if few enough to be meant. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const bound = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let bestDistance = bound + 1;
  for (const candidate of candidates) {
    const distance = typingErrors(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, replacements, and neighbours swapped. */
function typingErrors(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let errors = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1));
      if (a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1] && row > 1 && column > 1) {
        errors = Math.min(errors, beforeLast[column - 2]! + 1);
      }
      current.push(errors);
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length]!;
}
