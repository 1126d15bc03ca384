// Owns: `epochd doctor`: of the running supervisor's services, or of what the flags of `run` describe. Must not: change anything.

import type { Command } from "commander";
import { EnvoyAdmin } from "../adapters/admin.ts";
import { connectTo } from "../api/client.ts";
import { parseAdminAddress } from "../config/admin_address.ts";
import { checkSections, type Sections } from "../config/load.ts";
import { type Problem, problemLine } from "../config/problem.ts";
import type { RunConfig } from "../config/run_config.ts";
import type { ServiceStatus } from "../core/status.ts";
import { examine } from "../doctor/examine.ts";
import type { Finding } from "../doctor/finding.ts";
import type { Patient, Serving } from "../doctor/patient.ts";
import { oneLine } from "../observe/words.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { socketOf } from "./api_socket_option.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { addRunOptions, flagValues, loadByFlags } from "./run_command.ts";
import { type Colour, painter, type Terminal } from "./terminal.ts";

interface Flags {
  readonly service?: string;
  readonly json?: true;
  readonly apiSocket?: string;
}

/** Of no use to a description of a service. */
const own = new Set(["service", "json", "api-socket"]);

export function addDoctorOptions(command: Command, terminal: Terminal, end: (code: number) => void): void {
  command.option("--service <NAME>", "of one service alone").option("--json", "for programs");
  addRunOptions(command);
  command.addHelpText("after", examples)
    .action(async () => end(await doctorCommand(command, command.opts<Flags>(), terminal)));
}

interface Examined {
  readonly service: string;
  readonly findings: readonly Finding[];
}

async function doctorCommand(command: Command, flags: Flags, terminal: Terminal): Promise<number> {
  const given = await settings(command, flags, terminal);
  if (typeof given === "number") return given;
  const { config, problems, status } = given;
  const names = Object.keys(config?.services ?? {});
  if (flags.service !== undefined && config !== undefined && !names.includes(flags.service)) {
    terminal.err(`error: no service ${flags.service}, expected one of: ${names.join(", ")}\n`);
    return exitCode.usage;
  }
  const examined: Examined[] = [];
  for (const name of names) {
    if (flags.service !== undefined && name !== flags.service) continue;
    examined.push({ service: name, findings: await examine(await toPatient(name, config!, status)) });
  }
  const wrong: readonly Finding[] = problems.map((problem) => ({
    check: "configuration",
    verdict: "fail",
    found: problemLine(problem),
    todo: "mend it: `epochd run` would not start with it",
  }));
  const all = [...wrong, ...examined.flatMap(({ findings }) => findings)];
  const fails = all.some(({ verdict }) => verdict === "fail");
  if (flags.json === true) {
    const supervisor = status === undefined ? {} : { supervisor: { pid: status.pid, version: status.version } };
    terminal.out(
      `${JSON.stringify({ ok: !fails, ...supervisor, configuration: wrong, services: examined }, undefined, 2)}\n`,
    );
  } else terminal.out(textOf(wrong, examined, status, terminal));
  return fails ? exitCode.refused : exitCode.ok;
}

interface Given {
  /** Absent where it is refused. */
  readonly config?: RunConfig;
  readonly problems: readonly Problem[];
  readonly status?: SupervisorStatus;
}

async function settings(command: Command, flags: Flags, terminal: Terminal): Promise<Given | number> {
  const values = Object.fromEntries(Object.entries(flagValues(command)).filter(([name]) => !own.has(name)));
  const environment = { PATH: Deno.env.get("PATH") };
  if (Object.keys(values).length > 0) {
    const { loaded } = await loadByFlags(values, environment);
    return loaded.kind === "loaded" ? { config: loaded.config, problems: [] } : { problems: loaded.problems };
  }
  const client = connectTo(socketOf(flags));
  const [status, config] = [await client.status(), await client.config()];
  if (status.kind !== "ok") {
    const code = reportFailure(status, terminal, flags.json === true);
    terminal.err("without a supervisor, doctor takes the flags of `epochd run`\n");
    return code;
  }
  if (config.kind !== "ok") return reportFailure(config, terminal, flags.json === true);
  const checked = checkSections(config.value as unknown as Sections, { flags: [], environment });
  if (checked.kind === "refused") return { problems: checked.problems, status: status.value };
  return { config: checked.config, problems: [], status: status.value };
}

async function toPatient(name: string, config: RunConfig, status: SupervisorStatus | undefined): Promise<Patient> {
  const running = status?.services[name];
  const serving = running === undefined ? undefined : await servingOf(running);
  return {
    service: name,
    config: config.services[name]!,
    inPod: Deno.env.get("KUBERNETES_SERVICE_HOST") !== undefined,
    root: "",
    ...(running === undefined ? {} : { supervisor: { pid: status!.pid, epochs: running.epochs } }),
    ...(serving === undefined ? {} : { serving }),
  };
}

async function servingOf({ epochs }: ServiceStatus): Promise<Serving | undefined> {
  const newest = epochs.find(({ role }) => role === "newest");
  const admin = newest === undefined ? undefined : parseAdminAddress(newest.admin);
  if (newest?.pid === undefined || admin === undefined) return undefined;
  const answer = await new EnvoyAdmin().identity(admin);
  const { pid, epoch } = newest;
  return { pid, epoch, admin, ...(answer.kind === "answered" ? { identity: answer.identity } : {}) };
}

const colours: Readonly<Record<Finding["verdict"], Colour>> = {
  ok: "green",
  warn: "yellow",
  fail: "red",
  unknown: "dim",
};

function textOf(
  wrong: readonly Finding[],
  examined: readonly Examined[],
  status: SupervisorStatus | undefined,
  terminal: Terminal,
): string {
  const paint = painter(terminal.colour);
  const of = status === undefined
    ? "no supervisor, by flags and file"
    : `supervisor ${status.version}, pid ${status.pid}`;
  const line = ({ check, verdict, found, todo }: Finding) => {
    const mark = paint(colours[verdict], (verdict === "unknown" ? "?" : verdict).padEnd(4));
    const text = `  ${mark}  ${check.replaceAll("_", " ").padEnd(19)}  ${oneLine(found)}`;
    return todo === undefined ? text : `${text}\n${" ".repeat(29)}${paint("bold", "->")} ${oneLine(todo)}`;
  };
  const all = [...wrong, ...examined.flatMap(({ findings }) => findings)];
  const count = (verdict: Finding["verdict"]) => all.filter((finding) => finding.verdict === verdict).length;
  return [
    `${paint("bold", "epochd doctor")}: ${of}`,
    ...wrong.map(line),
    ...examined.flatMap(({ service, findings }) => ["", paint("bold", service), ...findings.map(line)]),
    "",
    `${count("fail")} to mend, ${count("warn")} to look at, ${count("ok")} fine, ${count("unknown")} not known`,
    "",
  ].join("\n");
}

const examples = `
Examples:
  epochd doctor                                    the services of the running supervisor
  epochd doctor --json | jq '.services[].findings[] | select(.verdict != "ok")'
  epochd doctor --envoy-config envoy.yaml --base-id 1      what \`epochd run\` with these flags would find
  epochd doctor --config epochd.yaml

Exit codes: 0 nothing to mend, 1 something would break a hot restart (or no supervisor), 2 usage.`;
