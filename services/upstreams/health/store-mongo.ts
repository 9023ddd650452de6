// Keeps the reports of `store.ts` in MongoDB, for a mesh.

import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import type { UpstreamReport } from "./figures.ts";
import type { HealthStore } from "./store.ts";

interface ReportDocument {
  /** The name of the process. */
  _id: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  upstreams: UpstreamReport[];
}

/** Reports in MongoDB, one document a process: some dozens, so they need no index. */
export function createMongoHealthStore(db: MongoDatabase): HealthStore {
  const reports = db.collection<ReportDocument>("upstream_report");
  return {
    async report(process, upstreams, atMs) {
      const doc = { atMs, upstreams: [...upstreams] };
      await db.attempt(() => reports.replaceOne({ _id: process }, doc, { upsert: true }));
    },
    async others(process, sinceMs) {
      const found = await db.attempt(() =>
        reports.find({ _id: { $ne: process }, atMs: { $gte: sinceMs } }).toArray(),
      );
      return found.map(({ upstreams }) => upstreams);
    },
    async forget(beforeMs) {
      await db.attempt(() => reports.deleteMany({ atMs: { $lt: beforeMs } }));
    },
  };
}
