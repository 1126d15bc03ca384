// Owns: whether the times of a handoff and of a stop fit into each other. Must not: repeat what a configuration is refused for.

import { formatDuration } from "../config/duration.ts";
import { fail, type Found, ok, warn } from "./finding.ts";
import type { Patient } from "./patient.ts";

/** Envoy's own end after its drain, and a busy node. */
const stopMarginMs = 5_000;

export function checkTiming({ config, inPod }: Patient): readonly Found[] {
  const { drainTimeMs, parentShutdownTimeMs, gracePeriodMs, preDrainDelayMs, minGapMs } = config;
  const [drain, parent] = [formatDuration(drainTimeMs), formatDuration(parentShutdownTimeMs)];
  const findings: Found[] = [];
  if (drainTimeMs >= parentShutdownTimeMs) {
    findings.push(fail(
      `drain_time ${drain} is not less than parent_shutdown_time ${parent}: a predecessor ends before it has drained`,
      "raise parent_shutdown_time",
    ));
  }
  const stopMs = preDrainDelayMs + drainTimeMs + stopMarginMs;
  const needMs = Math.max(parentShutdownTimeMs + stopMarginMs, stopMs);
  if (gracePeriodMs === 0 && inPod) {
    findings.push(warn(
      "grace_period is not set in a pod: epochd can't know when kubelet kills it",
      `set --grace-period to the pod's terminationGracePeriodSeconds, more than ${formatDuration(needMs)}`,
    ));
  } else if (gracePeriodMs > 0 && gracePeriodMs <= parentShutdownTimeMs + stopMarginMs) {
    findings.push(fail(
      `grace_period ${formatDuration(gracePeriodMs)} is not more than parent_shutdown_time ${parent} and ${
        formatDuration(stopMarginMs)
      }: kubelet kills a predecessor that still drains`,
      `raise terminationGracePeriodSeconds and --grace-period above ${formatDuration(needMs)}`,
    ));
  } else if (gracePeriodMs > 0 && gracePeriodMs < stopMs) {
    findings.push(fail(
      `grace_period ${formatDuration(gracePeriodMs)} is less than what a stop takes: pre_drain_delay ${
        formatDuration(preDrainDelayMs)
      }, drain_time ${drain} and ${formatDuration(stopMarginMs)}`,
      `raise terminationGracePeriodSeconds and --grace-period to ${formatDuration(needMs)} or more`,
    ));
  }
  if (minGapMs === 0) {
    findings.push(warn(
      "min_gap is 0: a second handoff while the first drains ends its predecessor at once, with what it holds",
      "set min_gap to parent_shutdown_time, unless that is meant",
    ));
  }
  if (findings.length > 0) return findings;
  const grace = gracePeriodMs === 0 ? "nothing bounds a stop" : `grace_period ${formatDuration(gracePeriodMs)}`;
  return [ok(`drain_time ${drain} < parent_shutdown_time ${parent}, ${grace}`)];
}
