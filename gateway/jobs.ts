// Says how the three kinds of jobs are called in paths, scopes and documents, so that one route serves all of them.

import type { FastifyRequest } from "fastify";
import {
  type JobNames,
  jobNames,
  statusNames,
  toJobDocument,
} from "#common/documents/job-document.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  FileArea,
  type Job,
  JobKind,
  type JobStatus,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { bodyLimitsBytes } from "./limits.ts";
import { callerOf } from "./request.ts";
import { type RouteSchema, string } from "./schemas.ts";

/** A kind of job in the public API. */
interface JobFamily extends JobNames {
  kind: JobKind;
  scope: Scope;
  area: FileArea;
  bodyLimitBytes: number;
}

/** Names of the families. */
export type FamilyName = JobFamily["name"];

type Kind = keyof typeof jobNames;
type Status = keyof typeof statusNames;

const families: Readonly<Record<Kind, JobFamily>> = {
  [JobKind.IMAGE]: {
    kind: JobKind.IMAGE,
    ...jobNames[JobKind.IMAGE],
    scope: Scope.IMAGES,
    area: FileArea.IMAGES,
    bodyLimitBytes: bodyLimitsBytes.references,
  },
  [JobKind.VIDEO]: {
    kind: JobKind.VIDEO,
    ...jobNames[JobKind.VIDEO],
    scope: Scope.VIDEOS,
    area: FileArea.VIDEOS,
    bodyLimitBytes: bodyLimitsBytes.references,
  },
  [JobKind.MUSIC]: {
    kind: JobKind.MUSIC,
    ...jobNames[JobKind.MUSIC],
    scope: Scope.MUSIC,
    area: FileArea.MUSIC,
    bodyLimitBytes: bodyLimitsBytes.other,
  },
};

/** All families, in the order of the documentation. */
export const jobFamilies: readonly JobFamily[] = Object.values(families);

/** Values of the `status` filter. */
export const statusFilter: Readonly<Record<string, JobStatus>> = Object.fromEntries(
  Object.entries(statusNames).map(([status, name]) => [name, Number(status) as Status]),
);

/** Values of the `kind` filter. */
export const kindFilter: Readonly<Record<string, JobKind>> = Object.fromEntries(
  jobFamilies.map((family) => [family.name, family.kind]),
);

/** The documentation's tag for each. */
export const familyTags: Record<FamilyName, string[]> = {
  image: ["Images"],
  video: ["Videos"],
  music: ["Music"],
};

/** May the caller's key read the jobs of all keys of its account? Only a job's own key may get its files or act on it. */
export function readsAllJobs(request: FastifyRequest): boolean {
  return callerOf(request).scopes.has(Scope.JOBS_READ_ALL);
}

/** A job for its reader. A reader that may read those of all keys sees the key of each. */
export function readJobDocument(request: FastifyRequest, job: Job, baseUrl: string) {
  const document = toJobDocument(job, baseUrl);
  return readsAllJobs(request) ? { ...document, keyId: job.keyId } : document;
}

/** The parameter of paths that name a job. */
export const jobIdParam = { jobId: string("The job.") };

/** One schema for each family. `title` is "Image", `one` is "an image". */
export function forEachFamily(
  schema: (family: JobFamily, words: { title: string; one: string }) => RouteSchema,
) {
  const entries = jobFamilies.map((family) => {
    const { name } = family;
    const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const one = `${name === "image" ? "an" : "a"} ${name}`;
    return [name, schema(family, { title, one })];
  });
  return Object.fromEntries(entries) as Record<FamilyName, RouteSchema>;
}
