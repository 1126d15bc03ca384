// Owns: what every handler of the API works with. Must not: answer.

import type { Observed } from "../observe/observed.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Binaries } from "../runtime/binaries.ts";
import type { Configuration } from "../runtime/configuration.ts";
import type { Control } from "../runtime/control.ts";
import type { UpgradeControl } from "../runtime/upgrade_status.ts";
import type { Identify, Identity } from "./client_identity.ts";
import type { Query } from "./parameters.ts";
import type { RouteLimits } from "./route_limits.ts";

/** What the connection tells of a request. */
export interface Env {
  readonly Bindings: { readonly gone: AbortSignal; readonly identify: Identify };
}

export interface ApiContext {
  readonly control: Control;
  readonly configuration: Configuration;
  readonly observed: Observed;
  readonly binaries: Binaries;
  /** Absent: this supervisor can't be upgraded. */
  readonly upgrade?: UpgradeControl;
  readonly limits: RouteLimits;
  readonly tell: (fact: ShellFact) => void;
}

/** One request, checked against its operation. */
export interface Asked {
  readonly request: Request;
  /** The variable of the path. */
  readonly name: string;
  readonly query: Query;
  readonly body: unknown;
  readonly identity: Identity;
  readonly gone: AbortSignal;
}

export type Handle = (asked: Asked) => Response | Promise<Response>;
