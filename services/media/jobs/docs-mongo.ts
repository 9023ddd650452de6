import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Document, ObjectId, UpdateFilter } from "mongodb";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isParked, type Job, type JobSpec, upstreamOf } from "./job.ts";
import { changesKept } from "./limits-mongo.ts";
import type { JobDocument, SpecDocument } from "./schema-mongo.ts";

/** For every write of a job: what is undefined is not stored. */
export const sparsely = { ignoreUndefined: true } as const;

/** A job as it is first written, by a change of this name. */
export function documentOf(job: Job, change: ObjectId): JobDocument {
  const { jobId, spec } = job;
  return { _id: jobId, v: 1, changes: [change], spec: specDocument(spec), ...fieldsOf(job) };
}

/** A job as it stands; what is not there is undefined. */
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

/** The write that makes `job`, which `doc` says, into `next`; a job that comes to run gets `place`. */
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

/** Names have no space in them, and nothing below it. */
export function laneOf(...names: [model: string, upstream: string, accountId: string]): string {
  return names.join(" ");
}

/** The names in a lane. */
export function namesOf(lane: string): [model: string, upstream: string, accountId: string] {
  const [model = "", upstream = "", accountId = ""] = lane.split(" ");
  return [model, upstream, accountId];
}

/** What commands may change of a job, and what follows from it. */
function fieldsOf(job: Job) {
  const { jobId: _, spec, ...fields } = job;
  const upstream = upstreamOf(job).name;
  const isOpen = job.state === "queued" && !isParked(job);
  const lane = isOpen ? laneOf(spec.model, upstream, job.accountId) : undefined;
  return { ...fields, upstream, lane, parked: isParked(job) ? (true as const) : undefined };
}

function specDocument(spec: JobSpec): SpecDocument {
  return { ...spec, upstreams: spec.upstreams.map((one) => toJson(UpstreamSchema, one)) };
}

function specOf(doc: SpecDocument): JobSpec {
  const upstreams = doc.upstreams.map((one) => fromJson(UpstreamSchema, one as JsonValue));
  return { ...doc, upstreams };
}
