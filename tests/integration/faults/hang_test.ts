// Owns: line 8 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/hang.ts";

register(scenarios);
