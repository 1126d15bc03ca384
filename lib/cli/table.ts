// Owns: aligned columns. Must not: colour (its codes would count as width).

/** Every row as one line without trailing blanks; columns are two blanks apart. */
export function alignedRows(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, cell.length));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd());
}
