// Owns: what the soak's handoffs and samples add up to. Must not: measure, or read a clock.
import { median, round } from "../sample.ts";

/** What the garbage collector does between two looks is far more than what a few handoffs could leak. */
const ENOUGH_HANDOFFS = 100;

export type Trigger = "SIGHUP" | "edit" | "restart" | "binary";
export const TRIGGERS: readonly Trigger[] = ["SIGHUP", "edit", "restart", "binary"];

export interface HandoffRecord {
  readonly number: number;
  readonly trigger: Trigger;
  /** Since the start of the soak. */
  readonly atMs: number;
  /** `lost`: no end of it was seen. */
  readonly outcome: "done" | "failed" | "lost";
  /** Of what is not done. */
  readonly detail?: string;
  readonly epoch?: number;
  /** By epochd's log. */
  readonly preflightMs?: number;
  readonly startMs?: number;
  readonly liveMs?: number;
  readonly drainedMs?: number;
}

export interface Sample {
  readonly atS: number;
  readonly handoffs: number;
  readonly requests: number;
  readonly rssAnonKb: number;
  readonly openFiles: number;
  readonly threads: number;
  /** Since epochd's start. */
  readonly cpuMs: number;
  readonly envoys: number;
  readonly zombies: number;
  readonly segmentBytes: number;
  readonly stateFiles: number;
  readonly stateBytes: number;
  readonly ledgerBytes: number;
  /** Of the requests since the last sample. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface TriggerTally {
  readonly trigger: Trigger;
  readonly asked: number;
  readonly done: number;
  readonly failed: number;
  readonly lost: number;
  readonly preflight: Quantiles;
  readonly start: Quantiles;
  readonly live: Quantiles;
  readonly drained: Quantiles;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** How one thing that is held went over time. */
export interface Trend {
  readonly first: number;
  readonly last: number;
  readonly least: number;
  readonly most: number;
  /** Medians of the second and of the last fifth of the samples: the first one warms up. */
  readonly early: number;
  readonly late: number;
  /** Of the straight line of least squares through all but the first fifth; undefined where that is too little to tell. */
  readonly perThousandHandoffs: number | undefined;
}

export function tallyByTrigger(records: readonly HandoffRecord[]): TriggerTally[] {
  return TRIGGERS.map((trigger) => {
    const own = records.filter((record) => record.trigger === trigger);
    const count = (outcome: HandoffRecord["outcome"]) => own.filter((record) => record.outcome === outcome).length;
    const of = (name: "preflightMs" | "startMs" | "liveMs" | "drainedMs") =>
      quantiles(own.map((record) => record[name] ?? NaN).filter((value) => !Number.isNaN(value)));
    return {
      trigger,
      asked: own.length,
      done: count("done"),
      failed: count("failed"),
      lost: count("lost"),
      preflight: of("preflightMs"),
      start: of("startMs"),
      live: of("liveMs"),
      drained: of("drainedMs"),
    };
  });
}

/** Nearest rank; zeros of nothing. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

export function trend(samples: readonly Sample[], value: (sample: Sample) => number): Trend {
  const values = samples.map(value);
  const fifth = Math.floor(values.length / 5);
  const [early, late] = [values.slice(fifth, 2 * fifth + 1), values.slice(-fifth - 1)];
  const steady = samples.slice(fifth);
  const handoffs = (steady.at(-1)?.handoffs ?? 0) - (steady[0]?.handoffs ?? 0);
  return {
    first: values[0] ?? 0,
    last: values.at(-1) ?? 0,
    least: values.length === 0 ? 0 : Math.min(...values),
    most: values.length === 0 ? 0 : Math.max(...values),
    early: values.length === 0 ? 0 : median(early),
    late: values.length === 0 ? 0 : median(late),
    perThousandHandoffs: handoffs < ENOUGH_HANDOFFS
      ? undefined
      : round(1_000 * slope(steady.map((sample) => [sample.handoffs, value(sample)])), 2),
  };
}

/** Of the line of least squares; 0 where all lie at one place. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const spreadX = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return spreadX > 0 ? points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spreadX : 0;
}

/** At most so many, each the one of its stretch that stands out most by `height`: a plot must not lose a peak. */
export function thin<T>(items: readonly T[], most: number, height: (item: T) => number): T[] {
  const stretch = Math.max(1, Math.ceil(items.length / most));
  const kept: T[] = [];
  for (let from = 0; from < items.length; from += stretch) {
    kept.push(items.slice(from, from + stretch).reduce((a, b) => height(b) > height(a) ? b : a));
  }
  return kept;
}
