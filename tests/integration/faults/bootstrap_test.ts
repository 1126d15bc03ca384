// Owns: line 1 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/bootstrap.ts";

register(scenarios);
