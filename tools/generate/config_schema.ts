/** docs/epochd.schema.json, for editors: what `epochd config schema` prints. */
import { configJsonSchema } from "../../lib/config/json_schema.ts";

export function configSchemaDocument(): string {
  return `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`;
}
