// Owns: line 9 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/segment.ts";

register(scenarios);
