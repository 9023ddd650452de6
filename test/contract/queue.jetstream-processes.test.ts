import { join } from "node:path";
import { expect, test } from "vitest";
import { children } from "../support/children.ts";
import { describeJetstream } from "./queue.jetstream.world.ts";

const script = join(import.meta.dirname, "queue.jetstream-child.ts");
const wakeUps = 200;

await describeJetstream("processes on one queue", (jetstream) => {
  const start = children();

  test("start at once, with other settings, and share the wake-ups", {
    timeout: 240_000,
  }, async () => {
    const name = jetstream.newName();
    const pair = [20_000, 30_000].map((ms) => start(script, jetstream.url, name, `${ms}`));
    for (const child of pair) expect(await child.next()).toBe("ready");
    for (const child of pair) child.go();
    for (const child of pair) expect(await child.next()).toBe("open");

    const queue = await jetstream.open(name, { redeliverMs: 30_000 });
    const ids = Array.from({ length: wakeUps }, (_, i) => `job_${String(i).padStart(3, "0")}`);
    const got: string[] = [];
    const shares = pair.map(async (child) => {
      let share = 0;
      for await (const id of child.lines) {
        share++;
        got.push(id);
        if (got.length === wakeUps) for (const one of pair) one.process.kill();
      }
      return share;
    });
    await Promise.all(ids.map((id) => queue.publish("jobs-image", id)));
    for (const share of await Promise.all(shares)) expect(share).toBeGreaterThan(0);
    expect(got.sort()).toEqual(ids);
  });
});
