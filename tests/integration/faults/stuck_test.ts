// Owns: line 3 of issue 4 as tests.
import { register } from "./scenario.ts";
import { scenarios } from "./scenarios/stuck.ts";

register(scenarios);
