import type { ObjectId } from "mongodb";
import { indexStep, type MongoSchema } from "#kit/mongo/migrate.ts";
import type { Job, JobSpec } from "./job.ts";

/** Collections of jobs. */
export const jobCollections = { jobs: "media_job", served: "media_served" } as const;

/** What a job is to do; messages of the catalog as their JSON. */
export interface SpecDocument extends Omit<JobSpec, "upstreams"> {
  upstreams: unknown[];
}

/**
 * A job with its idempotency slot, its wake-up and its lease: each transition is one write of this document, under the
 * condition that it still has the version that was read. What is undefined is not there.
 */
export interface JobDocument extends Omit<Job, "jobId" | "spec" | "sent"> {
  /** The job id. */
  _id: string;
  /** Rises with every change. */
  v: number;
  /** Names of the newest changes: whoever had no answer finds his among them, or knows that it was not made. */
  changes: ObjectId[];
  spec: SpecDocument;
  /** Absent in documents of earlier builds. */
  sent?: boolean;
  /** The name of its present upstream. */
  upstream: string;
  /** Queued, and not parked: model, upstream and account; the oldest of each lane may be claimed. */
  lane?: string | undefined;
  /** Queued, and no worker's before its next try. */
  parked?: true | undefined;
  /** Running, of a model with a limit: a number below that limit, which no other running job of the model has. */
  place?: number;
  /** Which look of a sweeper took it last. */
  taken?: ObjectId;
}

/** When a worker came to an account: a hint for fairness, which may lag behind the jobs or be lost. */
export interface ServedDocument {
  /** `<kind> <account>` */
  _id: string;
  at: number;
}

const indexes: MongoSchema["indexes"] = {
  [jobCollections.jobs]: [
    {
      name: "slot",
      key: { "slot.scope": 1, "slot.key": 1 },
      unique: true,
      partial: { "slot.key": { $exists: true } },
    },
    { name: "due", key: { state: 1, dueAt: 1 }, partial: { dueAt: { $exists: true } } },
    {
      name: "waiting",
      key: { "spec.kind": 1, lane: 1, createdAt: 1, _id: 1 },
      partial: { lane: { $exists: true } },
    },
    {
      name: "parked",
      key: { "spec.kind": 1, parked: 1, createdAt: 1 },
      partial: { parked: { $exists: true } },
    },
    // With all that a claim wants to know, so that it reads no job that it does not claim.
    {
      name: "running",
      key: { state: 1, "spec.kind": 1, accountId: 1, "spec.model": 1, place: 1 },
      partial: { state: "running" },
    },
    {
      name: "lost",
      key: { "spec.kind": 1, "lease.until": 1 },
      partial: { state: "running" },
    },
    // Keeps a model's limit: of two claims that see the same free place, one is refused.
    {
      name: "place",
      key: { "spec.model": 1, place: 1 },
      unique: true,
      partial: { place: { $exists: true } },
    },
    {
      name: "output",
      key: { "outputs.fileId": 1 },
      partial: { "outputs.fileId": { $exists: true } },
    },
    { name: "of_key", key: { keyId: 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 } },
    { name: "of_account", key: { accountId: 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 } },
  ],
  [jobCollections.served]: [],
};

/** What jobs keep in MongoDB. */
export const jobsMongoSchema: MongoSchema = {
  component: "media_jobs",
  indexes,
  steps: [indexStep(indexes)],
};
