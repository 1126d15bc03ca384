// Owns: values as the API writes them. Must not: know what they mean.

/** Clocks count in nanoseconds; a tenth of a millisecond is what a reader can use. */
export function toJson(value: unknown): string {
  return JSON.stringify(
    value,
    (key, field: unknown) => typeof field === "number" && key.endsWith("Ms") ? Math.round(field * 10) / 10 : field,
  );
}

export function jsonResponse(value: unknown, status = 200): Response {
  return new Response(`${toJson(value)}\n`, { status, headers: { "content-type": "application/json" } });
}
