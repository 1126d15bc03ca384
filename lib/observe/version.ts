// Owns: the version of epochd and of what it runs on. Must not: be written anywhere else but deno.json.

export const version = "0.1.0";
export const runtime = `deno ${Deno.version.deno}`;
