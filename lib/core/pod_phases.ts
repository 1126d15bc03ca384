// Owns: the phases of a service whose base id another pod shares. Must not: hold what can be derived (view.ts does that).

import type { AdminAddress, Epoch, Exit, Plan } from "./epoch.ts";
import type { Sighting } from "./sighting.ts";
import type { Comeback, Predecessor } from "./state.ts";

/** Before the first start, where the base id is shared. */
export interface Detecting {
  readonly kind: "detecting";
  readonly attempt: number;
  readonly sinceMs: number;
  readonly tries: number;
  readonly told: boolean;
  /** The newest of the several that were waited for. */
  readonly newestSlot: number | undefined;
  /** What to start where nobody is there, or nobody but the foreign predecessor that it had. */
  readonly wish: Comeback | undefined;
  /** Whose concurrency was taken over before the preflight. */
  readonly adopted: number | undefined;
  /** The orphan that still initialises and was told of. */
  readonly awaited?: number;
  readonly step:
    | { readonly kind: "locking" }
    | { readonly kind: "looking" }
    | { readonly kind: "preflight"; readonly beganAtMs: number; readonly seen: Sighting }
    | { readonly kind: "deciding"; readonly plan: Plan; readonly controlPlane: "unasked" | "there" }
    | {
      readonly kind: "awaiting_control_plane";
      readonly plan: Plan;
      readonly admin: AdminAddress;
      readonly epoch: number;
      readonly sinceMs: number;
      readonly told: boolean;
    }
    | { readonly kind: "repairing"; readonly comeback: Comeback }
    /** The newest of several has died while this one waited: its own supervisor comes first. */
    | { readonly kind: "giving_way" };
}

/** Another pod's successor is attached to the newest epoch, which the protocol will end. */
export interface Yielding {
  readonly kind: "yielding";
  readonly epoch: Epoch;
  readonly predecessor: Predecessor | undefined;
  /** The stop that was asked for: carried out when the protocol has ended the epoch. */
  readonly stop: { readonly reason: string; readonly times: number } | undefined;
  readonly sinceMs: number;
  /** Since when its socket is there. */
  readonly presentSinceMs: number | undefined;
  /** The one that is there now. */
  readonly successorLive: boolean;
  /** This epoch's listeners are closed, or about to be: one was LIVE, or a drain had begun. */
  readonly isDeaf: boolean;
  /** Since when its process holds no listening socket for traffic. */
  readonly closedSinceMs: number | undefined;
  readonly vanishedSinceMs: number | undefined;
  /** The last look heard this epoch's own admin. */
  readonly own: boolean;
  readonly mending: "locking" | "repairing" | undefined;
}

/** The newest epoch has ended and another pod's serves. */
export interface Superseded {
  readonly kind: "superseded";
  readonly epoch: Epoch;
  readonly exit: Exit;
  readonly sinceMs: number;
  /** A successor was seen while the epoch still lived. */
  readonly attached: boolean;
  /** A successor was seen since. */
  readonly verified: boolean;
  /** Until the new pod is ready: at every moment one of the two is. */
  readonly markerHeld: boolean;
  readonly vanishedSinceMs: number | undefined;
}
