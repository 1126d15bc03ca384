// Owns: line 7 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/binary.ts";

register(scenarios);
