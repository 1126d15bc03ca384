/** README's figures: lines of the last reports of `make bench` and `make soak`. Owns which of them; what they say is the reports'. */
import { join } from "node:path";
import { projectDir } from "../toolchain.ts";
import { table } from "./markdown.ts";

interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly bound: string;
  readonly passed: boolean;
}

interface Soak {
  readonly load: {
    readonly traffic: { readonly requests: number };
    readonly requestsFailed: number;
    readonly streamsBroken: number;
  };
  readonly byTrigger: readonly { readonly asked: number; readonly done: number }[];
}

/** Each has to match a figure of the report; those that were measured compiled come first. */
const CLAIMS: readonly RegExp[] = [
  /^dropped in /,
  /^failed of .* held open/,
  /^SIGHUP to LIVE, compiled$/,
  /^SIGHUP to LIVE with /,
  /^SIGHUP to the last LIVE of /,
  /^cross-pod start to LIVE/,
  /^start of epochd run to Envoy's exec/,
  /^kill -9 of Envoy to exit 1, compiled$/,
  /^CPU of an idle epochd/,
  /^RssAnon after /,
];

export function figuresTable(): string {
  const { figures } = read<{ readonly figures: readonly Figure[] }>("bench/report.json");
  const claimed = CLAIMS.flatMap((claim) => {
    const found = figures.filter(({ name }) => claim.test(name));
    if (found.length === 0) throw new Error(`bench/report.json has no figure ${claim}: run make bench`);
    return found;
  });
  const rows = claimed.map(({ name, value, unit, bound, passed }) => [
    name.replace(", compiled", ""),
    `${Number(value.toFixed(2))} ${unit}`,
    passed ? bound : `${bound}, missed`,
  ]);
  return table(["figure", "measured", "bound"], [soakRow(read<Soak>("bench/soak.json")), ...rows]);
}

function soakRow({ load, byTrigger }: Soak): string[] {
  const sum = (of: "asked" | "done") => byTrigger.reduce((total, one) => total + one[of], 0);
  const failed = load.requestsFailed + load.streamsBroken + sum("asked") - sum("done");
  const what = `failed in ${count(sum("asked"))} handoffs under load, ${count(load.traffic.requests)} requests`;
  return [what, `${failed} requests, streams and handoffs`, "0"];
}

function count(of: number): string {
  return of.toLocaleString("en");
}

function read<T>(path: string): T {
  return JSON.parse(Deno.readTextFileSync(join(projectDir, path)));
}
