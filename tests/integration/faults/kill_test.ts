// Owns: line 4 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/kill.ts";

register(scenarios);
