// Owns: reading YAML that others judge, quickly: a bootstrap of a megabyte must not hold the mailbox up. Must not: be used to change
// YAML, or to tell a user what is wrong with his epochd.yaml; lib/config does that.

import {
  CORE_SCHEMA,
  defineMappingTag,
  defineScalarTag,
  defineSequenceTag,
  loadAll,
  mapTag,
  YAMLException,
} from "js-yaml";

export type QuickYaml =
  /** The first document; aliases are shared, and may be circular. */
  | { readonly kind: "read"; readonly value: unknown }
  | { readonly kind: "refused"; readonly problem: string };

/** Deeper than any message that Envoy takes (protobuf: 100), and far from where recursion ends. */
const DEEPEST = 1_000;

// Envoy knows `!ignore` and takes no offence at others (1.38 to 1.40): a tag changes nothing here.
const neverDumped = { matchByTagPrefix: true, identify: () => false };
const ignored = (prefix: string) => [
  defineScalarTag(prefix, { ...neverDumped, resolve: (source: string) => source }),
  defineSequenceTag(prefix, {
    ...neverDumped,
    create: (): unknown[] => [],
    addItem: (items: unknown[], item: unknown) => void items.push(item),
  }),
  defineMappingTag(prefix, { ...mapTag, ...neverDumped }),
];
const schema = CORE_SCHEMA.withTags(...ignored("!"));

export function readQuickly(text: string): QuickYaml {
  try {
    return { kind: "read", value: loadAll(text, { schema, json: true, maxDepth: DEEPEST })[0] };
  } catch (error) {
    if (!(error instanceof YAMLException)) return { kind: "refused", problem: String(error) };
    const { reason, mark } = error;
    const at = mark === undefined ? "" : ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    return { kind: "refused", problem: `${reason}${at}` };
  }
}
