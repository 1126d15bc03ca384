// Owns: deaths of draining predecessors as tests.
import { provideStandIn } from "../../../tools/native_stand_in.ts";
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/orphan.ts";

// From source epochd finds it where this puts it.
await provideStandIn();
register(scenarios);
