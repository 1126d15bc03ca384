// Owns: `owner.json`: what the serving supervisor tells its successor about itself. Must not: be trusted for life; sockets and
// admin prove that, this only says where to look and what to take over.

import { join } from "node:path";
import * as z from "zod";
import type { Owner } from "../core/sighting.ts";
import { reason } from "./content.ts";
import { temporaryFor } from "./temporary.ts";

const addressSchema = z.union([
  z.object({ kind: z.literal("tcp"), host: z.string(), port: z.number().int().min(1).max(65535) }),
  z.object({ kind: z.literal("unix"), path: z.string().min(1) }),
]);

/** Unknown fields pass: a newer supervisor may say more. */
const ownerSchema = z.looseObject({
  epoch: z.number().int().nonnegative(),
  ready: z.boolean(),
  admin: addressSchema,
  baseId: z.number().int().nonnegative(),
  concurrency: z.number().int().positive(),
  drainTimeMs: z.number().nonnegative(),
  parentShutdownTimeMs: z.number().nonnegative(),
  gracePeriodMs: z.number().nonnegative(),
  uid: z.number().int(),
  bootId: z.string(),
  instance: z.string(),
  pod: z.string(),
  version: z.string(),
  envoyVersion: z.string(),
  proof: z.string().optional(),
});

export class OwnerFile {
  readonly #path: string;

  constructor(stateDir: string) {
    this.#path = join(stateDir, "owner.json");
  }

  async read(): Promise<Owner | undefined> {
    try {
      const parsed = ownerSchema.safeParse(JSON.parse(await Deno.readTextFile(this.#path)));
      return parsed.success ? parsed.data : undefined;
    } catch {
      return undefined;
    }
  }

  async write(owner: Owner): Promise<string | undefined> {
    const temporary = temporaryFor(this.#path);
    try {
      await Deno.writeTextFile(temporary, `${JSON.stringify(owner, null, 2)}\n`, { mode: 0o644 });
      await Deno.rename(temporary, this.#path);
      return undefined;
    } catch (error) {
      await Deno.remove(temporary).catch(() => {});
      return `write ${this.#path}: ${reason(error)}`;
    }
  }
}
