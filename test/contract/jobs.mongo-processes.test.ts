import { join } from "node:path";
import { expect, test } from "vitest";
import type { JobStore } from "../../services/media/jobs/store.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { type Child, children } from "../support/children.ts";
import { describeMongo } from "../support/mongo.ts";
import type { Said } from "./jobs.mongo-child.ts";
import { queuedIn } from "./jobs.shapes.ts";

const script = join(import.meta.dirname, "jobs.mongo-child.ts");
const jobIds = Array.from({ length: 40 }, (_, i) => `job_${i}`);

await describeMongo("jobs that several processes work on", (mongo) => {
  const start = children();

  async function newJobs(): Promise<{ store: JobStore; url: string }> {
    const name = mongo.newName();
    const store = createMongoJobStore(mongo.connect(name));
    await store.open();
    for (const [i, jobId] of jobIds.entries()) {
      const model = i % 4 === 0 ? "limited" : "m";
      await queuedIn(store, jobId, { account: `acct_${i % 3}`, model });
    }
    const url = new URL(mongo.url);
    url.pathname = `/${name}`;
    return { store, url: url.href };
  }

  async function run(kill: number | undefined): Promise<{ all: Said[]; each: Said[][] }> {
    const { store, url } = await newJobs();
    const pair = [start(script, url, "one"), start(script, url, "two")];
    for (const child of pair) expect(await child.next()).toBe("ready");
    for (const child of pair) child.go();
    const each = await Promise.all(
      pair.map((child, i) => heard(child, i === 0 ? kill : undefined)),
    );
    const all = each.flat();
    // Each job has ended: with outputs, or because it was lost too often.
    const states = await Promise.all(jobIds.map(async (jobId) => (await store.find(jobId))?.state));
    expect(states.filter((state) => state !== "settling" && state !== "failing")).toEqual([]);
    // Each claim has a fence of its own, and one worker alone has won.
    const claims = all.filter(({ what }) => what === "claimed");
    expect(new Set(claims.map(nameOf)).size).toBe(claims.length);
    const won = all.filter(({ what }) => what === "won").map(({ jobId }) => jobId);
    expect(new Set(won).size).toBe(won.length);
    if (kill === undefined) {
      expect(won).toHaveLength(states.filter((state) => state === "settling").length);
      expect(new Set(claims.map(({ jobId }) => jobId)).size).toBe(jobIds.length);
    }
    return { all, each };
  }

  test("none is claimed twice under one fence, none is lost", async () => {
    const { each } = await run(undefined);
    // Otherwise it was no race.
    for (const said of each) expect(said.length).toBeGreaterThan(5);
  });

  test("one of them is killed: the other does what is left", async () => {
    await run(15);
  });
});

async function heard(child: Child, killAfter: number | undefined): Promise<Said[]> {
  const said: Said[] = [];
  for await (const line of child.lines) {
    if (!line.endsWith("}")) continue;
    said.push(JSON.parse(line) as Said);
    if (said.length === killAfter) child.process.kill("SIGKILL");
  }
  return said;
}

function nameOf({ jobId, fence }: Said): string {
  return `${jobId} ${fence}`;
}
