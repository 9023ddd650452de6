import { execFile } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { MeshRole } from "../../services/host/roles.ts";
import { meshRoles } from "../../services/host/run-mesh/plan.ts";
import type { MeshWorld } from "./world.ts";

/** A fault under load. */
export interface Scenario {
  name: string;
  /** Resolves when the broken part is repaired, or was continued. */
  happen(world: MeshWorld): Promise<void>;
  /** Is it run where only one of each sort is? */
  isSample?: boolean;
}

const run = promisify(execFile);
/** Milliseconds for which a paused or absent part is away. */
const awayMs = 10_000;
/** Milliseconds from a kill to the new process, like with an orchestrator. */
const restartAfterMs = 1_000;
type Store = "mongodb" | "nats" | "s3";
const stores: readonly Store[] = ["mongodb", "nats", "s3"];

/** Every role killed and paused. */
const ofRoles = meshRoles.flatMap((role): Scenario[] => [
  { name: `kill -9 ${role}`, happen: (world) => killOne(world, role), isSample: role === "text" },
  { name: `pause ${role}`, happen: (world) => pauseOne(world, role), isSample: role === "billing" },
]);

/** Every store out of reach, silent, and with connections that break. */
const ofStores = stores.flatMap((store): Scenario[] => [
  {
    name: `pause ${store}`,
    async happen({ stores: { wires } }) {
      wires[store].hold();
      await delay(awayMs);
      wires[store].mend();
    },
    isSample: store === "mongodb",
  },
  {
    name: `cut off ${store}`,
    async happen({ stores: { wires } }) {
      wires[store].cut();
      await delay(awayMs / 2);
      wires[store].mend();
    },
    isSample: store === "s3",
  },
  { name: `resets of ${store}`, happen: (world) => resets(world, store) },
]);

const others: readonly Scenario[] = [
  {
    name: "slow mongodb",
    async happen({ stores: { wires } }) {
      // Each reply is up to a fifth of a second late.
      for (let n = 0; n < awayMs / slowMs / 1.25; n++) {
        wires.mongodb.hold();
        await delay(slowMs);
        wires.mongodb.mend();
        await delay(slowMs / 4);
      }
    },
  },
  {
    name: "stream deleted",
    async happen({ stores: { stream } }) {
      await stream((streams, name) => streams.delete(name));
      await delay(awayMs / 2);
    },
    isSample: true,
  },
  {
    name: "stream full",
    async happen({ stores: { stream } }) {
      const limit = (max: number) =>
        stream((streams, name) => streams.update(name, { max_msgs: max }).then(() => {}));
      await limit(1);
      await delay(awayMs / 2);
      await limit(-1);
    },
  },
];

const slowMs = 200;

/** `kill -9` of the servers themselves. Only a run that has them to itself may do this. `script` knows `kill` and `up`. */
function ofServers(script: string): Scenario[] {
  const names = { mongodb: "mongo", nats: "nats", s3: "s3" };
  return stores.map((store) => ({
    name: `kill -9 ${store}`,
    async happen() {
      await run(script, ["kill", names[store]]);
      await delay(restartAfterMs);
      await run(script, ["up", names[store]]);
    },
  }));
}

/** All scenarios. `backendsScript` can kill the servers themselves. */
export function allScenarios(backendsScript: string | undefined): Scenario[] {
  return [
    ...ofRoles,
    ...ofStores,
    ...others,
    ...(backendsScript === undefined ? [] : ofServers(backendsScript)),
  ];
}

async function killOne(world: MeshWorld, role: MeshRole): Promise<void> {
  const [one] = world.of(role);
  await one?.kill();
  await delay(restartAfterMs);
  await one?.start();
}

async function pauseOne(world: MeshWorld, role: MeshRole): Promise<void> {
  const [one] = world.of(role);
  one?.pause();
  await delay(awayMs);
  one?.resume();
}

async function resets({ stores: { wires } }: MeshWorld, store: Store): Promise<void> {
  for (let n = 0; n < 20; n++) {
    wires[store].snap();
    await delay(250);
  }
}
