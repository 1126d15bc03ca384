// Owns: line 18 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/rollback.ts";

register(scenarios);
