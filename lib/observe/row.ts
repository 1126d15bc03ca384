// Owns: what the catalogue says of one kind of event. Must not: know any kind.

export type Level = "debug" | "info" | "warn" | "error";

/** What a field holds; `exit` becomes `exitCode` and `exitSignal` in a log line, `refusal` becomes `refusal` and `detail`. */
export type FieldKind = "text" | "number" | "ms" | "boolean" | "digest" | "path" | "list" | "pair" | "exit" | "refusal";

export interface Row<F extends { readonly kind: string }> {
  readonly level: Level | ((fact: F) => Level);
  /** Every field of the fact: a missing or superfluous one does not compile. */
  readonly fields: { readonly [K in Exclude<keyof F, "kind">]-?: FieldKind };
  /** For people: what happened, to what, with which value; no full stop. */
  readonly message: (fact: F) => string;
}

/** One row a kind: a missing one does not compile. */
export type Rows<F extends { readonly kind: string }> = {
  readonly [K in F["kind"]]: Row<Extract<F, { readonly kind: K }>>;
};
