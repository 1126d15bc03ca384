// Owns: the operations about executables as data, as operation.ts has the others. Must not: answer, or import a library.

import {
  badParameter,
  closing,
  json,
  type Operation,
  problem,
  refusedByState,
  stale,
  unchangedSince,
  unknownService,
  wait,
  waitOver,
  yesNo,
} from "./operation_parts.ts";

const drainedSwitch = yesNo("by a drained restart, for what can't hand over: connections end", "false");
const forceSwitch = yesNo("also where it runs already, and although a serving epoch's control plane is away", "false");
const switched = {
  200: json("the new epoch serves, or the old one has ended; or it runs already (unchanged)", "Switched"),
  202: json("switched, and a hot restart is asked for", "Switched"),
  400: badParameter,
  404: problem("there is no such service, or no such executable"),
  409: refusedByState,
  412: stale,
  503: closing,
  504: waitOver,
} as const;

export const binaryOperations: readonly Operation[] = [
  {
    id: "binaries",
    method: "GET",
    path: "/v1/services/{name}/binaries",
    summary: "The executables that were pushed, newest first, and which of them runs",
    role: "read",
    headers: ["if-none-match"],
    answers: {
      200: json("as they are now", "Binaries"),
      304: unchangedSince,
      404: unknownService,
      409: problem("the service has no slots_dir"),
    },
  },
  {
    id: "push",
    method: "PUT",
    path: "/v1/services/{name}/binary",
    summary:
      "Another executable: taken in as it comes, checked (size, digest, signature, what a handoff asks), put in its slot, and hot restarted into",
    role: "admin",
    query: {
      sha256: {
        description: "what its digest must be; the same as what runs is answered without reading it",
        pattern: "^[0-9a-f]{64}$",
        expected: "64 hexadecimal digits in lower case",
      },
      size: { description: "how many bytes it must have", pattern: "^[1-9][0-9]{0,14}$", expected: "a whole number" },
      wait,
      force: forceSwitch,
      drained: drainedSwitch,
    },
    headers: ["epochd-signature", "if-match"],
    stream: { type: "application/octet-stream" },
    answers: {
      ...switched,
      413: problem("it is larger than binary_max_bytes"),
      422: problem("size, digest or signature are wrong"),
      507: problem("the disk has no room for it"),
    },
  },
  {
    id: "rollbackBinary",
    method: "POST",
    path: "/v1/services/{name}/binary/rollback",
    summary: "Back to an executable that is in its slot: the one before, or the one that `to` names",
    role: "admin",
    query: {
      to: {
        description: "the beginning of its digest, or `installed` for envoy_path",
        pattern: "^([0-9a-f]{4,64}|installed)$",
        expected: "4 to 64 hexadecimal digits in lower case, or installed",
      },
      wait,
      force: forceSwitch,
      drained: drainedSwitch,
    },
    headers: ["if-match"],
    answers: switched,
  },
];
