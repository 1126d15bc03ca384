// Owns: line 2 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/run_failure.ts";

register(scenarios);
