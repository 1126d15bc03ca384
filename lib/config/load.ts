// Owns: the way from flags and epochd.yaml to a RunConfig, or to the list of everything that is wrong with them; the same at
// start and for every later change. Must not: start, write or remember anything.

import { checkEnvoyArgs } from "../adapters/envoy_args.ts";
import { checkSocketPath } from "../api/socket_path.ts";
import { checkApiRules } from "./api_rules.ts";
import { type FlagValues, type GivenFlag, givenFlags, runFlags } from "./flags.ts";
import { checkPaths, findExecutable } from "./paths.ts";
import { type IssueContext, type Namer, type Problem, shown, toProblems } from "./problem.ts";
import { checkPublicKeys } from "./public_keys.ts";
import { checkRules } from "./rules.ts";
import type { ListenConfig, RunConfig } from "./run_config.ts";
import { apiFields, type ConfigFields, configSchema, logFields } from "./schema.ts";
import { type ServiceConfig, toServiceConfig } from "./service_config.ts";
import { onlyService, serviceFieldDescriptions, serviceFields } from "./service_schema.ts";

export type Sections = Readonly<Record<string, unknown>>;

export interface Environment {
  readonly EPOCHD_API_SOCKET?: string | undefined;
  readonly PATH?: string | undefined;
}

/** What this supervisor was started with and keeps: it stands over whatever epochd.yaml says. */
export interface ConfigOrigin {
  readonly configPath?: string;
  readonly flags: readonly GivenFlag[];
  readonly environment: Environment;
  /** The service that flags describe, from the start on; absent where the file had several. */
  readonly flagService?: string;
}

export type Checked =
  | {
    readonly kind: "checked";
    readonly config: RunConfig;
    readonly fields: ConfigFields;
    /** Fields (joined paths) whose value came from a flag or the environment, and its name there. */
    readonly pinned: ReadonlyMap<string, string>;
  }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

export type Loaded =
  | {
    readonly kind: "loaded";
    readonly config: RunConfig;
    readonly fields: ConfigFields;
    readonly origin: ConfigOrigin;
    /** As the file says it, without flags; empty where there is no file. */
    readonly sections: Sections;
    /** Of the file's text. */
    readonly fileDigest?: string;
  }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

export async function loadRunConfig(values: FlagValues, environment: Environment): Promise<Loaded> {
  const configPath = typeof values.config === "string" ? values.config : undefined;
  // Loaded only where a file is used: yaml costs the start 20 ms and more.
  const file = configPath === undefined ? undefined : await (await import("./file.ts")).readConfigFile(configPath);
  if (file?.kind === "refused") return file;
  const sections = file?.sections ?? {};
  const names = Object.keys(sectionOf(sections.services) ?? {});
  const origin: ConfigOrigin = {
    flags: givenFlags(values),
    environment,
    ...(names.length > 1 ? {} : { flagService: names[0] ?? onlyService }),
    ...(configPath === undefined ? {} : { configPath }),
  };
  const checked = checkSections(sections, origin);
  if (checked.kind === "refused") return checked;
  const { config, fields } = checked;
  return {
    kind: "loaded",
    config,
    fields,
    origin,
    sections,
    ...(file === undefined ? {} : { fileDigest: file.digest }),
  };
}

/** `where` stands for the file's name in messages, where the sections come from elsewhere. */
export function checkSections(sections: Sections, origin: ConfigOrigin, where = origin.configPath): Checked {
  const merged = mergeFlags(sections, origin);
  const context = issueContext(merged, where);
  const parsed = configSchema.safeParse(merged.raw);
  const problems = [...merged.problems, ...(parsed.success ? [] : toProblems(parsed.error.issues, context))];
  if (problems.length > 0 || !parsed.success) return { kind: "refused", problems };
  return finish(parsed.data, context.nameOf, origin, merged.given);
}

function finish(
  fields: ConfigFields,
  nameOf: Namer,
  { environment, configPath }: ConfigOrigin,
  pinned: ReadonlyMap<string, string>,
): Checked {
  const { api } = fields;
  const problems: Problem[] = [
    ...checkRules(fields, nameOf),
    ...checkApiRules(fields, nameOf, Deno.version.deno),
  ];
  const wrongSocket = checkSocketPath(api.socket);
  if (wrongSocket !== undefined) {
    problems.push({ where: nameOf(["api", "socket"]), value: shown(api.socket), expected: wrongSocket });
  }
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
    problems.push(...checkPublicKeys(service.binary_public_keys, nameOfField("binary_public_keys")));
    const envoyPath = findExecutable(service.envoy_path, environment.PATH ?? "");
    services[name] = toServiceConfig(name, envoyPath === undefined ? service : { ...service, envoy_path: envoyPath });
    problems.push(...checkPaths(service.envoy_config, envoyPath, service.envoy_path, nameOfField));
  }
  if (problems.length > 0) return { kind: "refused", problems };
  const listen = listenConfig(api);
  return {
    kind: "checked",
    config: {
      services,
      apiSocket: api.socket,
      apiClientRoles: api.client_roles,
      persist: api.persist,
      log: fields.log,
      ...(listen === undefined ? {} : { apiListen: listen }),
      ...(configPath === undefined ? {} : { configPath }),
    },
    fields,
    pinned,
  };
}

function listenConfig(api: ConfigFields["api"]): ListenConfig | undefined {
  if (api.listen === undefined) return undefined;
  const { tls_cert: certPath, tls_key: keyPath, client_ca: clientCaPath, keys_file: keysPath } = api;
  return {
    address: api.listen,
    ...(certPath === undefined || keyPath === undefined
      ? {}
      : { tls: { certPath, keyPath, ...(clientCaPath === undefined ? {} : { clientCaPath }) } }),
    ...(keysPath === undefined ? {} : { keysPath }),
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
  { flags, environment, flagService, configPath }: ConfigOrigin,
): Merged {
  const given = new Map<string, string>();
  const problems: Problem[] = [];
  const described = sectionOf(sections.services);
  const names = Object.keys(described ?? {});
  const overService: Record<string, unknown> = {};
  const overSection = { api: {} as Record<string, unknown>, log: {} as Record<string, unknown> };
  for (const { section, field, value } of flags) {
    if (section !== "service") {
      overSection[section][field.key] = value;
      given.set(`${section}.${field.key}`, `--${field.flag}`);
    } else if (flagService === undefined) {
      const expected = `${configPath} describes ${names.length} services, expected services.NAME.${field.key} there`;
      problems.push({ where: `--${field.flag}`, value: shown(value), expected });
    } else {
      overService[field.key] = value;
      given.set(`services.${flagService}.${field.key}`, `--${field.flag}`);
    }
  }
  const socket = environment.EPOCHD_API_SOCKET;
  if (socket !== undefined && socket !== "" && overSection.api.socket === undefined) {
    overSection.api.socket = socket;
    given.set("api.socket", "EPOCHD_API_SOCKET");
  }
  // A section of a wrong kind stays as it is, so that the schema says so.
  const services = described === undefined || flagService === undefined
    ? sections.services
    : { ...described, ...overOne(described, flagService, overService, configPath === undefined) };
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

/** Without a file the flags alone make a service; a file that has services, and this one no more, has removed it. */
function overOne(services: Sections, name: string, values: Sections, always: boolean): Sections {
  const isThere = Object.hasOwn(services, name);
  if (!isThere && !always && Object.keys(services).length > 0) return {};
  return over(isThere ? services[name] : undefined, values, always, name);
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
