// Owns: lines 5 and 6 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/death.ts";

register(scenarios);
