// Owns: the API as a whole: its listeners, who asks on each, and its end. Must not: know routes' meaning.

import type { RunConfig } from "../config/run_config.ts";
import type { Log } from "../observe/log.ts";
import type { Observed } from "../observe/observed.ts";
import type { Binaries } from "../runtime/binaries.ts";
import type { Configuration } from "../runtime/configuration.ts";
import type { Control } from "../runtime/control.ts";
import type { UpgradeControl } from "../runtime/upgrade_status.ts";
import { type Identify, socketClient } from "./client_identity.ts";
import type { Handler } from "./connection.ts";
import { Gate, type GateLimits } from "./gate.ts";
import { isStreamed } from "./operation.ts";
import { type RouteLimits, routeLimits } from "./route_limits.ts";
import { routes } from "./routes.ts";
import { listenOnSocket } from "./unix_listener.ts";

export interface ApiLimits extends GateLimits, RouteLimits {}

const defaultLimits: ApiLimits = {
  ...routeLimits,
  connections: 64,
  headBytes: 16_384,
  bodyBytes: 262_144,
  requestMs: 5_000,
  stallMs: 30_000,
  isStreamed,
  writeMs: 10_000,
};

export interface ApiOptions {
  /** What clients use; becomes a link. */
  readonly path: string;
  readonly control: Control;
  readonly configuration: Configuration;
  readonly observed: Observed;
  readonly binaries: Binaries;
  readonly log: Pick<Log, "shell">;
  readonly upgrade?: UpgradeControl;
  readonly limits?: Partial<ApiLimits>;
  /** Once it resolves, the link may be taken from a living supervisor, one time; else it waits for that one's end. */
  readonly turn?: Promise<void>;
}

export interface RunningApi {
  /** What of a new configuration holds at once. */
  use(config: RunConfig): void;
  /** Ends listening at once, then ends streams and waits and gives their last answers a moment. */
  close(): Promise<void>;
}

/** Where it can't listen, that is told and nothing more: the API is no reason to keep Envoy from serving. */
export async function startApi(
  { path, control, configuration, observed, binaries, log, limits: some, turn, upgrade }: ApiOptions,
): Promise<RunningApi> {
  const limits = { ...defaultLimits, ...some };
  const tell: Log["shell"] = (fact) => log.shell(fact);
  const context = { control, configuration, observed, binaries, limits, tell, ...(upgrade && { upgrade }) };
  const app = routes(context, (error) => {
    tell({ kind: "bug", problem: `API: ${error.stack ?? error.message}` });
  });
  const handlerFor = (identify: Identify): Handler => (request, gone) => app.fetch(request, { gone, identify });
  // A gate for each listener: whoever fills the one that strangers reach does not shut out kubectl exec.
  const local = new Gate(limits);
  const onSocket = handlerFor(() => socketClient);
  const socket = await listenOnSocket(path, tell, (connection) => local.serve(connection, onSocket), turn);
  if ("problem" in socket) tell({ kind: "api_failed", path, problem: socket.problem });
  const remote = await startTcp(configuration.running.config, limits, handlerFor, tell);
  return {
    use: (config) => remote?.credentials.useRules(config.apiClientRoles),
    async close() {
      if (!("problem" in socket)) socket.close();
      remote?.listening.close();
      remote?.credentials.close();
      await Promise.all([local.close(), remote?.gate.close()]);
    },
  };
}

/** Its libraries are loaded where it is asked for. */
async function startTcp(
  { apiListen, apiClientRoles }: RunConfig,
  limits: ApiLimits,
  handlerFor: (identify: Identify) => Handler,
  tell: Log["shell"],
) {
  if (apiListen === undefined) return undefined;
  const [{ Credentials }, { listenOnTcp }, { socketConnection }] = await Promise.all([
    import("./credentials.ts"),
    import("./tcp_listener.ts"),
    import("./socket_connection.ts"),
  ]);
  const gate = new Gate(limits);
  const credentials = new Credentials(apiListen.keysPath, apiClientRoles, tell);
  credentials.begin();
  const listening = listenOnTcp(apiListen, tell, {
    isFull: () => gate.isFull || gate.isClosing,
    handshakeMs: limits.requestMs,
    take: (socket, secured) =>
      gate.serve(socketConnection(socket), handlerFor(credentials.identifier(socket, secured))),
  });
  return { gate, credentials, listening };
}
