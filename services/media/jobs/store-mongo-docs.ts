// Declares the documents and indexes of jobs in MongoDB, and changes one job by one write under a condition.

import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Collection, Document, ObjectId, UpdateFilter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { mongodb } from "#kit/store/mongo/driver.ts";
import { awayRefusal } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import { createTurns } from "#kit/store/mongo/turns.ts";
import { ModelCallSchema, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { changesKept, maxTransitionRounds } from "../limits.ts";
import {
  isParked,
  type Job,
  type JobHead,
  type JobSpec,
  textPaths,
  upstreamOf,
  withoutText,
} from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";
import type { RenewCommand } from "./renewals.ts";

/** Collections of jobs. */
export const jobCollections = { jobs: "media_job", served: "media_served" } as const;

/** The spec of a job, with the catalog's messages as JSON. */
export interface SpecDocument extends Omit<JobSpec, "upstreams" | "call"> {
  upstreams: unknown[];
  call?: unknown;
}

/**
 * A job with its idempotency slot, its wake-up and its lease. Each transition is one write of this document, under the condition that
 * it still has the version that was read. Undefined fields are not stored.
 */
export interface JobDocument extends Omit<Job, "jobId" | "spec" | "sent"> {
  /** The job id. */
  _id: string;
  /** Rises with every change. */
  v: number;
  /** Names of the newest changes. A process that got no answer finds its own among them, or knows that it was not made. */
  changes: ObjectId[];
  spec: SpecDocument;
  /** Absent in documents of earlier builds. */
  sent?: boolean;
  /** The name of its present upstream. */
  upstream: string;
  /** Set while queued and not parked: model, upstream and account. The oldest job of each lane may be claimed. */
  lane?: string | undefined;
  /** Set while queued and not to be claimed before its next try. */
  parked?: true | undefined;
  /** Set while running, for a model with a limit. It is a number below that limit that no other running job of the model has. */
  place?: number;
  /** Which look of a sweeper took it last. */
  taken?: ObjectId;
}

/** When a worker last claimed a job of an account. It is a hint for fairness, which may lag behind the jobs or be lost. */
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
    // It holds all the fields that a claim needs, so that only the claimed job itself is read.
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
    // Enforces a model's limit: of two claims that see the same free place, one is refused.
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
    // By the state itself, so that a job that an older build has ended is found too.
    {
      name: "unannounced",
      key: { state: 1, "webhook.isAnnounced": 1 },
      partial: { "webhook.isAnnounced": false },
    },
    { name: "of_key", key: { keyId: 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 } },
    { name: "of_all", key: { state: 1, "spec.kind": 1, createdAt: 1, _id: 1 } },
    { name: "of_account", key: { accountId: 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 } },
    {
      name: "of_key_model",
      key: { keyId: 1, "spec.model": 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 },
    },
    {
      name: "of_account_model",
      key: { accountId: 1, "spec.model": 1, state: 1, "spec.kind": 1, createdAt: 1, _id: 1 },
    },
  ],
  [jobCollections.served]: [],
};

/** The collections and indexes of jobs in MongoDB. */
export const jobsMongoSchema: MongoSchema = {
  component: "media_jobs",
  indexes,
  steps: [indexStep(indexes)],
};

/** For every write of a job: undefined fields are not stored. */
export const sparsely = { ignoreUndefined: true } as const;

/** A new job's document, by a change of this name. */
export function documentOf(job: Job, change: ObjectId): JobDocument {
  const { jobId, spec } = job;
  return { _id: jobId, v: 1, changes: [change], spec: specDocument(spec), ...fieldsOf(job) };
}

/** A document's job. Missing fields are undefined. */
export function jobOf(doc: JobDocument): Job {
  const { _id, v, changes, spec, upstream, lane, parked, place, taken, failure, ...rest } = doc;
  return {
    jobId: _id,
    ...rest,
    // Documents of earlier builds have neither.
    sent: rest.sent ?? false,
    wait: rest.wait && { ...rest.wait, until: rest.wait.until },
    spec: specOf(spec),
    failure: failure && { ...failure, param: failure.param },
  };
}

/** Long parts of a document are not sent: see `JobStore.findWithoutText`. */
export const exceptText: Document = Object.fromEntries(
  textPaths.map((path) => [`spec.${path}`, 0]),
);

/** The job of a document that was read without them. */
export function jobWithoutTextOf(doc: JobDocument): Job {
  const job = jobOf(doc);
  return { ...job, spec: withoutText(job.spec) };
}

/** The write that turns `job`, whose document is `doc`, into `next`. A job that begins to run gets `place`. */
export function updateOf(
  doc: JobDocument,
  { job, next, change, place }: { job: Job; next: Job; change: ObjectId; place?: number },
): UpdateFilter<JobDocument> {
  const before: Document = fieldsOf(job);
  const set: Document = {
    v: doc.v + 1,
    changes: [...doc.changes, change].slice(-changesKept),
  };
  const unset: Document = {};
  for (const [name, value] of Object.entries(fieldsOf(next))) {
    if (value === before[name]) continue;
    if (value === undefined) unset[name] = "";
    else set[name] = value;
  }
  if (next.spec !== job.spec) set.spec = specDocument(next.spec);
  if (next.state !== "running" && doc.place !== undefined) unset.place = "";
  if (next.state === "running" && place !== undefined) set.place = place;
  return { $set: set, ...(Object.keys(unset).length === 0 ? {} : { $unset: unset }) };
}

/** Is a change among those that a job remembers? */
export function hasChange(doc: JobDocument | null, change: ObjectId): boolean {
  return doc?.changes.some((one) => one.equals(change)) ?? false;
}

/** Names contain no space, and no character below it. */
export function laneOf(...names: [model: string, upstream: string, accountId: string]): string {
  return names.join(" ");
}

/** The names in a lane. */
export function namesOf(lane: string): [model: string, upstream: string, accountId: string] {
  const [model = "", upstream = "", accountId = ""] = lane.split(" ");
  return [model, upstream, accountId];
}

/** The fields of a job that commands may change, and the fields that depend on them. */
function fieldsOf(job: Job) {
  const { jobId: _, spec, ...fields } = job;
  const upstream = upstreamOf(job).name;
  const isOpen = job.state === "queued" && !isParked(job);
  const lane = isOpen ? laneOf(spec.model, upstream, job.accountId) : undefined;
  return { ...fields, upstream, lane, parked: isParked(job) ? (true as const) : undefined };
}

function specDocument(spec: JobSpec): SpecDocument {
  const { call, upstreams, ...rest } = spec;
  return {
    ...rest,
    upstreams: upstreams.map((one) => toJson(UpstreamSchema, one)),
    ...(call && { call: toJson(ModelCallSchema, call) }),
  };
}

function specOf({ call, upstreams, ...doc }: SpecDocument): JobSpec {
  return {
    ...doc,
    upstreams: upstreams.map((one) => fromJson(UpstreamSchema, one as JsonValue)),
    ...(call !== undefined && { call: fromJson(ModelCallSchema, call as JsonValue) }),
  };
}

/**
 * Applies a command to a job, once. Undefined where its state does not allow it. `place`: for a job that begins to run. Where another
 * running job of the model has that place, the driver's duplicate key error is thrown, and nothing was changed.
 */
export interface Transition {
  (jobId: string, command: JobCommand, place?: number): Promise<Job | undefined>;
  /** The long parts of the spec are not read for it. */
  renew(jobId: string, command: RenewCommand): Promise<JobHead | undefined>;
}

/** The parts that a renewal neither needs nor changes, and that may be long. */
const unread = { "spec.request": 0, "spec.call": 0, "spec.references": 0, "spec.metadata": 0 };

/** Makes it. */
export function createTransition(db: MongoDatabase, jobs: Collection<JobDocument>): Transition {
  // One process makes one change of a job at a time, so only other processes can come in between.
  const inTurn = createTurns(db.clock);
  const transition = (jobId: string, command: JobCommand, place?: number) =>
    inTurn(jobId, () => change(db, jobs, jobId, command, { place }));
  return Object.assign(transition, {
    renew: (jobId: string, command: RenewCommand) =>
      inTurn(jobId, async () => {
        const job = await change(db, jobs, jobId, command, { projection: unread });
        if (!job) return undefined;
        const { spec: _, ...head } = job;
        return head;
      }),
  });
}

/**
 * Reads, steps, and writes where the version is still the one that was read. The change has a name. So where an answer was lost, the
 * document itself shows whether the change was made. A request that comes late finds another version.
 */
function change(
  db: MongoDatabase,
  jobs: Collection<JobDocument>,
  jobId: string,
  command: JobCommand,
  { place, projection = {} }: { place?: number | undefined; projection?: Document },
): Promise<Job | undefined> {
  const name = new (mongodb().ObjectId)();
  let sent: { v: number; next: Job } | undefined;
  return db.attempt(async (unsure) => {
    for (let round = 0; round < maxTransitionRounds; round++) {
      const doc = await jobs.findOne({ _id: jobId }, { projection });
      if (sent && hasChange(doc, name)) return sent.next;
      if (sent && unsure && (!doc || doc.v - sent.v > changesKept)) throw untold();
      const job = doc && jobOf(doc);
      const next = job && step(job, command);
      if (!next) return undefined;
      sent = { v: doc.v, next };
      const update = updateOf(doc, {
        job,
        next,
        change: name,
        ...(place === undefined ? {} : { place }),
      });
      const { matchedCount } = await jobs.updateOne({ _id: jobId, v: doc.v }, update, sparsely);
      if (matchedCount === 1) return next;
    }
    throw awayRefusal(new Error("a job does not come to rest"));
  });
}

function untold() {
  return awayRefusal(new Error("it is not known any more whether a job's change was made"));
}
