import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { judge } from "./invariants.ts";
import { startLoad } from "./load.ts";
import { describeMesh } from "./servers.ts";
import { startMeshWorld } from "./world.ts";

/** Milliseconds of load before the first and after the last restart. */
const aroundMs = 2_000;

await describeMesh("a rolling restart", () => {
  test("of every process in turn under load fails no request, and begins no generation again", {
    timeout: 300_000,
  }, async () => {
    await using world = await startMeshWorld({
      replicas: "2",
      env: { GENMESH_DRAIN_MS: "15000" },
    });
    if (!world) throw new Error("there is no server for one of the stores");
    const load = await startLoad(world);
    await delay(aroundMs);
    const codes: Record<string, number | null> = {};
    for (const one of world.processes) {
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
    // Each upstream task was begun once: a successor took it up.
    const keys = world.media
      .seen("POST /images/generations")
      .map(({ headers }) => headers["idempotency-key"]);
    expect(keys.length).toBe(new Set(keys).size);
  });
});
