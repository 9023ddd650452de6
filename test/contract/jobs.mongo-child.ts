import { once } from "node:events";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { leaseMs } from "../../services/media/limits.ts";
import { now, query } from "./jobs.shapes.ts";

/** A worker's report of a claim. */
export interface Said {
  jobId: string;
  fence: number;
  /** "claimed": it has claimed the job. "won": its outputs were stored. "beaten": the job had another worker by then. */
  what: "claimed" | "won" | "beaten";
}

/** Workers of one process. */
const workers = 4;
/** A worker that found nothing for this number of leases ends. */
const idleLeases = 3;

/**
 * Claims jobs. Leaves every third one without an end, like a worker that died, and completes the others. Where nothing is due, its clock
 * moves on by a lease, so that it takes jobs from other processes.
 */
async function work(url: string, owner: string): Promise<void> {
  const store = createMongoJobStore(openMongo({ url }));
  const modelLimits = new Map([["limited", 2]]);
  let claims = 0;
  let leases = 0;
  const one = async () => {
    for (let idle = 0; idle < idleLeases; ) {
      const at = now + leases * leaseMs;
      const job = await store.claim(query({ owner, now: at, modelLimits }));
      if (!job) {
        idle++;
        leases++;
        continue;
      }
      idle = 0;
      if (job.state !== "running") continue;
      const { jobId, fence } = job;
      say({ jobId, fence, what: "claimed" });
      if (fence < 3 && ++claims % 3 === 0) continue;
      const won = await store.apply(jobId, { kind: "win", fence, outputs: [], now: at });
      say({ jobId, fence, what: won ? "won" : "beaten" });
    }
  };
  await Promise.all(Array.from({ length: workers }, one));
}

function say(said: Said): void {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

const [, , url, owner = ""] = process.argv;
if (url) {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  await work(url, owner);
  process.exit(0);
}
