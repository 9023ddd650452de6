import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { judge } from "./invariants.ts";
import { startLoad } from "./load.ts";
import { startMeshWorld } from "./world.ts";

/** Milliseconds of load before the first and after the last restart. */
const aroundMs = 2_000;

/**
 * Restarts every process of a mesh in turn, under load. A rolling restart must not make requests fail, lose or repeat jobs, or charge
 * twice. `from` is the checkout that runs before. Default: this one. By `order` callers are restarted first, beginning with the gateways,
 * or the services that they call.
 */
export async function restartInTurn({
  from,
  order = "callers first",
}: {
  from?: string;
  order?: "callers first" | "called first";
} = {}) {
  await using world = await startMeshWorld({
    replicas: "2",
    env: { GENMESH_DRAIN_MS: "15000" },
    checkout: from,
  });
  if (!world) throw new Error("there is no server for one of the stores");
  const load = await startLoad(world);
  await delay(aroundMs);
  const codes: Record<string, number | null> = {};
  // A plan has the gateways first and the workers last.
  const processes = order === "callers first" ? world.processes : world.processes.toReversed();
  for (const one of processes) {
    world.log.push({ name: one.name, line: `stop at ${load.nowMs()}` });
    codes[one.name] = await one.stop();
    world.log.push({ name: one.name, line: `stopped at ${load.nowMs()}` });
    await one.start();
  }
  await delay(aroundMs);
  await load.stop();
  const failures = load.outcomes.filter(({ failure }) => failure !== undefined);
  expect(failures).toEqual([]);
  expect(Object.entries(codes).filter(([, code]) => code !== 0)).toEqual([]);
  const verdict = await judge(world, load);
  expect(verdict).toEqual({ lost: [], double: [], jobs: { completed: load.accepted.length } });
  expect(load.outcomes.length).toBeGreaterThan(100);
  // Each task upstream was begun once, because a successor took it over.
  const keys = world.media
    .seen("POST /images/generations")
    .map(({ headers }) => headers["idempotency-key"]);
  expect(keys.length).toBe(new Set(keys).size);
}
