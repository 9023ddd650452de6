import type { Collection, Document } from "mongodb";
import type { Standing } from "./census.ts";
import { mediaKinds } from "./job.ts";
import type { JobDocument } from "./schema-mongo.ts";

const counted = { jobs: { $sum: 1 }, oldestCreatedAt: { $min: "$createdAt" } };
// However many wait, their index alone is read; of the others there are never many.
const waiting: Document[] = [
  { $match: { "spec.kind": { $in: [...mediaKinds] }, lane: { $gt: "" } } },
  { $project: { _id: 0, "spec.kind": 1, createdAt: 1 } },
  { $group: { _id: { kind: "$spec.kind", state: "queued" }, ...counted } },
];
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
    [waiting, moving].map((steps) => jobs.aggregate(steps).toArray()),
  );
  return groups.flat().map(({ _id, jobs: count, oldestCreatedAt }) => ({
    kind: _id.kind,
    state: _id.state,
    jobs: Number(count),
    oldestCreatedAt: Number(oldestCreatedAt),
  }));
}
