import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { FileArea, JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { bodyLimitsBytes } from "./limits.ts";

/** A kind of job, as the public API has it. */
export interface JobFamily {
  kind: JobKind;
  /** First segment of its paths. */
  path: "images" | "videos" | "music";
  /** For people and operation ids. */
  name: "image" | "video" | "music";
  /** `object` of its documents. */
  object: "image.job" | "video.job" | "music.job";
  /** The field that holds its outputs. */
  outputs: "images" | "videos" | "clips";
  scope: Scope;
  area: FileArea;
  bodyLimitBytes: number;
}

type Kind = Exclude<JobKind, typeof JobKind.UNSPECIFIED>;
type Status = Exclude<JobStatus, typeof JobStatus.UNSPECIFIED>;

const families: Readonly<Record<Kind, JobFamily>> = {
  [JobKind.IMAGE]: {
    kind: JobKind.IMAGE,
    path: "images",
    name: "image",
    object: "image.job",
    outputs: "images",
    scope: Scope.IMAGES,
    area: FileArea.IMAGES,
    bodyLimitBytes: bodyLimitsBytes.references,
  },
  [JobKind.VIDEO]: {
    kind: JobKind.VIDEO,
    path: "videos",
    name: "video",
    object: "video.job",
    outputs: "videos",
    scope: Scope.VIDEOS,
    area: FileArea.VIDEOS,
    bodyLimitBytes: bodyLimitsBytes.references,
  },
  [JobKind.MUSIC]: {
    kind: JobKind.MUSIC,
    path: "music",
    name: "music",
    object: "music.job",
    outputs: "clips",
    scope: Scope.MUSIC,
    area: FileArea.MUSIC,
    bodyLimitBytes: bodyLimitsBytes.other,
  },
};

const statusNames: Readonly<Record<Status, "queued" | "running" | "completed" | "failed">> = {
  [JobStatus.QUEUED]: "queued",
  [JobStatus.RUNNING]: "running",
  [JobStatus.COMPLETED]: "completed",
  [JobStatus.FAILED]: "failed",
};

/** All families, in the order of the documentation. */
export const jobFamilies: readonly JobFamily[] = Object.values(families);

/** The family of a job; throws where the media service sent none. */
export function familyOf(kind: JobKind): JobFamily {
  const family = kind === JobKind.UNSPECIFIED ? undefined : families[kind];
  if (!family) throw new Error("a job without a kind");
  return family;
}

/** The public name of a state; throws where the media service sent none. */
export function statusName(status: JobStatus): (typeof statusNames)[Status] {
  const name = status === JobStatus.UNSPECIFIED ? undefined : statusNames[status];
  if (!name) throw new Error("a job without a state");
  return name;
}

/** Values of the `status` filter. */
export const statusFilter: Readonly<Record<string, JobStatus>> = Object.fromEntries(
  Object.entries(statusNames).map(([status, name]) => [name, Number(status) as Status]),
);

/** Values of the `kind` filter. */
export const kindFilter: Readonly<Record<string, JobKind>> = Object.fromEntries(
  jobFamilies.map((family) => [family.name, family.kind]),
);
