import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { meshRoles } from "../../services/host/run-mesh/plan.ts";
import { failuresOf } from "./fault-run.ts";
import { judge } from "./invariants.ts";
import { startLoad } from "./load.ts";
import { describeMesh } from "./servers.ts";
import { startMeshWorld } from "./world.ts";

/** Milliseconds: longer than any lease. */
const aheadMs = 120_000;
/** Milliseconds of load: several sweeps of all due work. */
const loadMs = 15_000;

await describeMesh("a mesh of which every second process", () => {
  test("is two minutes ahead: no caller notices, and no worker takes what another works on", {
    timeout: 240_000,
  }, async () => {
    const clocksAheadMs = Object.fromEntries(meshRoles.map((role) => [`${role}-2`, aheadMs]));
    await using world = await startMeshWorld({ replicas: "2", clocksAheadMs });
    if (!world) throw new Error("there is no server for one of the stores");
    const load = await startLoad(world);
    await delay(loadMs);
    await load.stop();
    expect(failuresOf(load)).toEqual([]);
    const verdict = await judge(world, load);
    expect(verdict).toEqual({ lost: [], double: [], jobs: { completed: load.accepted.length } });
    const claims = world.log.filter(({ line }) => line.includes('"msg":"job claimed"'));
    expect(claims.length).toBe(load.accepted.length);
  });
});
