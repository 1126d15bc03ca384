// Owns: values as YAML for people. Must not: be loaded before it is needed (the library costs 20 ms).

import { stringify } from "yaml";

export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}
