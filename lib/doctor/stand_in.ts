// Owns: whether there is what stands in for a predecessor that dies while it drains. Must not: start it.

import { accessSync, constants } from "node:fs";
import { standInProgram } from "../stand_in/location.ts";
import { type Found, ok, warn } from "./finding.ts";

/** Looks beside this executable, which is the supervisor's own where both were installed together. */
export function checkStandIn(program: string = standInProgram()): Found {
  try {
    accessSync(program, constants.X_OK);
    return ok(`${program} is there for a predecessor that dies while it drains`);
  } catch (error) {
    const why = (error as { code?: string }).code === "ENOENT" ? "is not there" : "can't be executed";
    return warn(
      `${program} ${why}: a predecessor that dies while it drains takes the serving Envoy along`,
      "bring it with epochd install, or copy it there from where epochd came from",
    );
  }
}
