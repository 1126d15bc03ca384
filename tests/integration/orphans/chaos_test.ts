// Owns: everything that may befall supervisors, watchers, stand-ins and draining Envoys of one node, in a random order under load.
// EPOCHD_CHAOS_SEED=7 plays another story than that of seed 1, EPOCHD_CHAOS_ROUNDS=40 a longer one.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { domainSockets } from "../../support/base_ids.ts";
import { ENVOY_VERSIONS } from "../../support/envoys.ts";
import { argvOf, isAlive } from "../../support/procfs.ts";
import { pause, until } from "../../support/until.ts";
import { Random } from "../../property/random.ts";
import { assertUnhurt } from "../scene.ts";
import { type Generation, type Unit, unit } from "./unit.ts";

const SEED = Number(Deno.env.get("EPOCHD_CHAOS_SEED") ?? 1);
const ROUNDS = Number(Deno.env.get("EPOCHD_CHAOS_ROUNDS") ?? 10);
const SETTINGS = { flags: ["--parent-shutdown-time", "3s"] };

/** What befalls the node of one seed. */
class Story {
  readonly told: string[] = [];
  readonly #supervisors: Generation[] = [];

  constructor(readonly here: Unit, readonly random: Random) {}

  get living(): readonly Generation[] {
    return this.#supervisors.filter(({ ended }) => ended === undefined);
  }

  /** Beside the living ones. */
  async start(): Promise<Generation> {
    const version = ENVOY_VERSIONS[this.random.between(0, ENVOY_VERSIONS.length - 1)]!;
    const one = await this.here.start({ ...SETTINGS, version });
    this.#supervisors.push(one);
    return one;
  }

  /** As a service manager does. */
  async ensure(): Promise<void> {
    if (this.living.length === 0) await this.start();
  }

  async round(): Promise<void> {
    const all = Object.entries(this.#deeds);
    const [name, deed] = all[this.random.between(0, all.length - 1)]!;
    this.told.push(
      `${name}, supervisors ${this.living.map(({ pid }) => pid)}, epochs ${[...this.here.envoys().keys()]}`,
    );
    await deed();
    await this.ensure();
    await pause(this.random.between(0, 2_500));
  }

  readonly #deeds: Readonly<Record<string, () => Promise<void>>> = {
    hangup: async () => {
      await this.#hangup();
    },
    kill: async () => {
      const { living } = this;
      await living[this.random.between(0, living.length - 1)]?.kill();
    },
    "kill all": () => this.#killAll(),
    "kill what drains": () => this.#killDraining(),
    "kill watchers": async () => {
      for (const pid of this.living.flatMap((one) => one.watchers())) end(pid);
      await Promise.resolve();
    },
    "kill stand-ins": async () => {
      for (const pid of standIns(this.here)) end(pid);
      await Promise.resolve();
    },
    freeze: async () => {
      const [one] = this.living;
      one?.signal("SIGSTOP");
      await pause(this.random.between(0, 4_000));
      one?.signal("SIGCONT");
    },
    "freeze and take over": async () => {
      const [one] = this.living;
      one?.signal("SIGSTOP");
      await this.start();
      await pause(this.random.between(0, 6_000));
      one?.signal("SIGCONT");
    },
    "kill what drains, then all": async () => {
      await this.#hangup();
      await pause(this.random.between(200, 3_000));
      await this.#killDraining();
      await pause(this.random.between(0, 1_500));
      await this.#killAll();
    },
    "kill what drains in a row of handoffs": async () => {
      await this.#hangup();
      await pause(this.random.between(200, 3_000));
      await this.#killDraining();
      await this.#hangup();
    },
  };

  async #hangup(): Promise<void> {
    for (const one of this.living) {
      // Before that its default would end it.
      await one.event("supervisor_started");
      one.signal("SIGHUP");
    }
  }

  async #killAll(): Promise<void> {
    await Promise.all(this.living.map((one) => one.kill()));
  }

  async #killDraining(): Promise<void> {
    const target = { hostname: "127.0.0.1", port: this.here.node.adminPort };
    const info = await serverInfo(target, 1_000).catch(() => undefined);
    if (info?.state !== "LIVE") return;
    for (const [epoch, pid] of this.here.envoys()) if (epoch < info.epoch) end(pid);
  }
}

Deno.test(`supervisors, watchers, stand-ins and draining Envoys killed and frozen (seed ${SEED}, ${ROUNDS} rounds) + nobody is refused, a stop leaves nothing`, async () => {
  await using here = await unit();
  const story = new Story(here, new Random(SEED));
  const first = await story.start();
  await first.event("ready_changed", ({ ready }) => ready === true);
  const traffic = here.node.traffic({ keepAliveClients: 0, newConnectionClients: 2, requestsPerSecond: 100 });
  for (let round = 0; round < ROUNDS; round++) await story.round();
  await until("one is left, and is Ready", async () => {
    await story.ensure();
    const [one, ...others] = story.living;
    return one !== undefined && others.length === 0 && await isReady(one);
  }, { timeoutMs: 60_000, everyMs: 500 });
  try {
    assertUnhurt(await traffic.stop());
  } catch (error) {
    throw new Error(story.told.join("\n"), { cause: error });
  }
  assert.equal(await story.living[0]!.stop(), 0);
  await until("no Envoy is left", () => here.envoys().size === 0);
  await until("no launcher is left", () => here.launchers().length === 0);
  await until("no stand-in is left", () => standIns(here).length === 0);
  await until("no socket is left", () => domainSockets(here.node.baseId).length === 0);
});

async function isReady(one: Generation): Promise<boolean> {
  try {
    const { phase, ready } = await one.status();
    return phase === "serving" && ready;
  } catch {
    // It has just begun, or ended.
    return false;
  }
}

/** Their first argument is the base id. */
function standIns({ node: { baseId } }: Unit): number[] {
  return livingPids().filter((pid) => argvOf(pid)[0]?.includes("epochd-stand-in") && argvOf(pid)[1] === String(baseId));
}

function livingPids(): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => pid > 0 && isAlive(pid));
}

function end(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}
