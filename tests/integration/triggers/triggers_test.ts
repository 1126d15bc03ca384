// Owns: triggers, the supervisor's end and its surroundings as tests (issue 4, lines 10 to 17, 19 and 20).
// Must not: say what is tried; scenarios/ does.

import { register } from "../faults/scenario.ts";
import { scenarios as clock } from "./scenarios/clock.ts";
import { scenarios as coalescing } from "./scenarios/coalescing.ts";
import { scenarios as controlPlane } from "./scenarios/control_plane.ts";
import { scenarios as draining } from "./scenarios/draining.ts";
import { scenarios as files } from "./scenarios/files.ts";
import { scenarios as init } from "./scenarios/init.ts";
import { scenarios as jitter } from "./scenarios/jitter.ts";
import { scenarios as killed } from "./scenarios/killed.ts";
import { scenarios as marker } from "./scenarios/marker.ts";
import { scenarios as stopping } from "./scenarios/stopping.ts";
import { scenarios as streams } from "./scenarios/streams.ts";
import { scenarios as watchLimit } from "./scenarios/watch_limit.ts";

register(
  [coalescing, files, watchLimit, stopping, draining, killed, marker, init, streams, clock, controlPlane, jitter]
    .flat(),
);
