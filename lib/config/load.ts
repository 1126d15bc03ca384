// Owns: the way from flags and epochd.yaml to a RunConfig, or to the list of everything that is wrong with them.
// Must not: start, write or remember anything.

import { checkEnvoyArgs } from "../adapters/envoy_args.ts";
import { readConfigFile } from "./file.ts";
import { type FlagValues, type GivenFlag, givenFlags, runFlags } from "./flags.ts";
import { checkPaths, findExecutable } from "./paths.ts";
import { type IssueContext, type Namer, type Problem, shown, toProblems } from "./problem.ts";
import { checkRules } from "./rules.ts";
import type { RunConfig } from "./run_config.ts";
import { apiFields, type ConfigFields, configSchema, logFields } from "./schema.ts";
import { type ServiceConfig, toServiceConfig } from "./service_config.ts";
import { onlyService, serviceFieldDescriptions, serviceFields } from "./service_schema.ts";

export type Loaded =
  | { readonly kind: "loaded"; readonly config: RunConfig }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

export interface Environment {
  readonly EPOCHD_API_SOCKET?: string | undefined;
  readonly PATH?: string | undefined;
}

type Sections = Readonly<Record<string, unknown>>;

export async function loadRunConfig(values: FlagValues, environment: Environment): Promise<Loaded> {
  const configPath = typeof values.config === "string" ? values.config : undefined;
  const file = configPath === undefined ? undefined : await readConfigFile(configPath);
  if (file?.kind === "refused") return file;
  const merged = mergeFlags(file?.sections ?? {}, givenFlags(values), environment, configPath);
  const context = issueContext(merged, configPath);
  const parsed = configSchema.safeParse(merged.raw);
  const problems = [...merged.problems, ...(parsed.success ? [] : toProblems(parsed.error.issues, context))];
  if (problems.length > 0 || !parsed.success) return { kind: "refused", problems };
  return finish(parsed.data, context.nameOf, environment, configPath);
}

function finish(fields: ConfigFields, nameOf: Namer, environment: Environment, configPath: string | undefined): Loaded {
  const problems: Problem[] = [...checkRules(fields, nameOf)];
  const services: Record<string, ServiceConfig> = {};
  for (const [name, service] of Object.entries(fields.services)) {
    const nameOfField = (key: string) => nameOf(["services", name, key]);
    const wrong = checkEnvoyArgs(service.envoy_args);
    if (wrong !== undefined) {
      problems.push({
        where: nameOfField("envoy_args"),
        value: shown(wrong.value),
        expected: `expected ${wrong.expected}`,
      });
    }
    const envoyPath = findExecutable(service.envoy_path, environment.PATH ?? "");
    services[name] = toServiceConfig(name, envoyPath === undefined ? service : { ...service, envoy_path: envoyPath });
    problems.push(...checkPaths(service.envoy_config, envoyPath, service.envoy_path, nameOfField));
  }
  if (problems.length > 0) return { kind: "refused", problems };
  return {
    kind: "loaded",
    config: {
      services,
      apiSocket: fields.api.socket,
      log: fields.log,
      ...(configPath === undefined ? {} : { configPath }),
    },
  };
}

interface Merged {
  /** What the schema is asked about: the file's values with the flags' over them. */
  readonly raw: Sections;
  /** Paths (joined) whose value came from a flag or the environment, and its name there. */
  readonly given: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
}

function mergeFlags(
  sections: Sections,
  flags: readonly GivenFlag[],
  environment: Environment,
  configPath: string | undefined,
): Merged {
  const given = new Map<string, string>();
  const problems: Problem[] = [];
  const described = sectionOf(sections.services);
  const names = Object.keys(described ?? {});
  const target = names.length === 0 ? onlyService : names[0]!;
  const overService: Record<string, unknown> = {};
  const overSection = { api: {} as Record<string, unknown>, log: {} as Record<string, unknown> };
  for (const { section, field, value } of flags) {
    if (section !== "service") {
      overSection[section][field.key] = value;
      given.set(`${section}.${field.key}`, `--${field.flag}`);
    } else if (names.length > 1) {
      const expected = `${configPath} describes ${names.length} services, expected services.NAME.${field.key} there`;
      problems.push({ where: `--${field.flag}`, value: shown(value), expected });
    } else {
      overService[field.key] = value;
      given.set(`services.${target}.${field.key}`, `--${field.flag}`);
    }
  }
  const socket = environment.EPOCHD_API_SOCKET;
  if (socket !== undefined && socket !== "" && overSection.api.socket === undefined) {
    overSection.api.socket = socket;
    given.set("api.socket", "EPOCHD_API_SOCKET");
  }
  // A section of a wrong kind stays as it is, so that the schema says so.
  const services = described === undefined || names.length > 1
    ? sections.services
    : { ...described, ...over(described[target], overService, configPath === undefined, target) };
  return {
    raw: {
      ...sections,
      ...(services === undefined ? {} : { services }),
      ...over(sections.api, overSection.api, false, "api"),
      ...over(sections.log, overSection.log, false, "log"),
    },
    given,
    problems,
  };
}

function over(
  section: unknown,
  values: Readonly<Record<string, unknown>>,
  always: boolean,
  name: string,
): Readonly<Record<string, unknown>> {
  const fields = sectionOf(section);
  if (fields === undefined || (!always && Object.keys(values).length === 0)) return {};
  return { [name]: { ...fields, ...values } };
}

/** A mapping, an empty one where nothing stands, undefined where something else does. */
function sectionOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (value === undefined || value === null) return {};
  return typeof value === "object" && !Array.isArray(value) ? value as Readonly<Record<string, unknown>> : undefined;
}

function issueContext(merged: Merged, configPath: string | undefined): IssueContext {
  const flagOf = new Map(runFlags.map(({ section, field }) => [`${section}.${field.key}`, `--${field.flag}`]));
  return {
    raw: merged.raw,
    nameOf: (path) => {
      const [section, second, third] = path.map(String);
      const place = section === "services" ? path.slice(0, 3) : path.slice(0, 2);
      const given = merged.given.get(place.join("."));
      if (given !== undefined) return given;
      const flag = flagOf.get(section === "services" ? `service.${third}` : `${section}.${second}`);
      if (configPath === undefined) return flag ?? path.join(".");
      return `${configPath}: ${path.join(".")}`;
    },
    keysAt: (path) => {
      if (path.length === 0) return Object.keys(configSchema.shape);
      if (path[0] === "services") return Object.keys(serviceFields);
      return Object.keys(path[0] === "api" ? apiFields : logFields);
    },
    purposeOf: (path) =>
      path[0] === "services" && path.length === 3
        ? serviceFieldDescriptions.find(({ key }) => key === path[2])?.description
        : undefined,
  };
}
