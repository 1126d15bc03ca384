// Owns: the checks of what a configuration points to, before anything starts. Must not: read contents (preflight does).

import { type Problem, shown } from "./problem.ts";

/** A name without a slash is looked up in PATH, as a shell does; undefined where it is nowhere. */
export function findExecutable(name: string, searchPath: string): string | undefined {
  if (name.includes("/")) return name;
  return searchPath.split(":").map((directory) => `${directory === "" ? "." : directory}/${name}`).find((candidate) => {
    const info = statOf(candidate);
    return typeof info === "object" && info.isFile && isExecutable(info);
  });
}

/** `executable` is undefined where PATH has no `asked`. */
export function checkPaths(
  bootstrap: string,
  executable: string | undefined,
  asked: string,
  nameOf: (key: string) => string,
): readonly Problem[] {
  const problems: Problem[] = [];
  const bootstrapWrong = notAFile(bootstrap);
  if (bootstrapWrong !== undefined) {
    const expected = `${bootstrapWrong}, expected Envoy's bootstrap file`;
    problems.push({ where: nameOf("envoy_config"), value: shown(bootstrap), expected });
  }
  const executableWrong = executable === undefined ? "is not in PATH" : notExecutable(executable);
  if (executableWrong !== undefined) {
    const expected = `${executableWrong}, expected Envoy's executable`;
    problems.push({ where: nameOf("envoy_path"), value: shown(asked), expected });
  }
  return problems;
}

function notAFile(path: string): string | undefined {
  const info = statOf(path);
  if (typeof info === "string") return info;
  if (info.isFile) return undefined;
  return info.isDirectory ? "is a directory" : "is not a regular file";
}

function notExecutable(path: string): string | undefined {
  const wrong = notAFile(path);
  if (wrong !== undefined) return wrong;
  const info = statOf(path);
  return typeof info === "string" || isExecutable(info) ? undefined : "is not executable";
}

function statOf(path: string): Deno.FileInfo | string {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "does not exist";
    if (error instanceof Deno.errors.PermissionDenied) return "may not be looked at (permission denied)";
    return error instanceof Error ? error.message : String(error);
  }
}

function isExecutable(info: Deno.FileInfo): boolean {
  return ((info.mode ?? 0o111) & 0o111) !== 0;
}
