import { once } from "node:events";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { createMongoJobStore } from "../../services/media/jobs/store-mongo.ts";
import { leaseMs } from "../../services/media/limits.ts";
import { now, query } from "./jobs.shapes.ts";

/** What a worker says of its claims. */
export interface Said {
  jobId: string;
  fence: number;
  /** It claimed the job; its outputs have won; it was no longer the job's worker. */
  what: "claimed" | "won" | "beaten";
}

/** Workers of one process. */
const workers = 4;
/** One that found nothing for so long, in leases, is done. */
const idleLeases = 3;

/**
 * Claims jobs, leaves every third one alone as if it had died with it, and wins the others; its time goes a lease on
 * whenever nothing is due, so that it takes from other processes what they are working on.
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
