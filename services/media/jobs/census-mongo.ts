import type { Collection, Document } from "mongodb";
import type { Standing } from "./census.ts";
import { mediaKinds } from "./job.ts";
import type { JobDocument } from "./schema-mongo.ts";

const counted = { jobs: { $sum: 1 }, oldestCreatedAt: { $min: "$createdAt" } };
// However many wait, their indexes alone are read; of the others there are never many.
const queued = (which: Document): Document[] => [
  { $match: { "spec.kind": { $in: [...mediaKinds] }, ...which } },
  { $project: { _id: 0, "spec.kind": 1, createdAt: 1 } },
  { $group: { _id: { kind: "$spec.kind", state: "queued" }, ...counted } },
];
const claimable = queued({ lane: { $gt: "" } });
const parked = queued({ parked: true });
const moving: Document[] = [
  {
    $match: {
      state: { $in: ["reserving", "running", "settling", "failing"] },
      dueAt: { $gte: 0 },
    },
  },
  { $group: { _id: { kind: "$spec.kind", state: "$state" }, ...counted } },
];

/** Open jobs by kind and state. */
export async function readCensus(jobs: Collection<JobDocument>): Promise<Standing[]> {
  const groups = await Promise.all(
    [claimable, parked, moving].map((steps) => jobs.aggregate(steps).toArray()),
  );
  const all = new Map<string, Standing>();
  for (const { _id, jobs: count, oldestCreatedAt } of groups.flat()) {
    const { kind, state } = _id;
    const known = all.get(`${kind} ${state}`);
    all.set(`${kind} ${state}`, {
      kind,
      state,
      jobs: Number(count) + (known?.jobs ?? 0),
      oldestCreatedAt: Math.min(Number(oldestCreatedAt), known?.oldestCreatedAt ?? Infinity),
    });
  }
  return [...all.values()];
}
