// Shows a job of the media service to its caller, to operators in the console, and to scripts of the command. The public names of
// kinds and states are here, too.

import { ErrorReason, errorRow, knownReason } from "#kit/base/errors.ts";
import {
  type Job,
  type JobError,
  JobKind,
  JobStatus,
  type OutputFile,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { isoTime, isoTimeOrNull } from "./answer-values.ts";

/** The public API's names for a kind of job. */
export interface JobNames {
  /** First segment of its paths. */
  path: "images" | "videos" | "music";
  /** For people and operation ids. */
  name: "image" | "video" | "music";
  /** `object` of its documents. */
  object: "image.job" | "video.job" | "music.job";
  /** The field that holds its outputs. */
  outputs: "images" | "videos" | "clips";
}

type Kind = Exclude<JobKind, typeof JobKind.UNSPECIFIED>;
type Status = Exclude<JobStatus, typeof JobStatus.UNSPECIFIED>;

/** The names of every kind. */
export const jobNames: Readonly<Record<Kind, JobNames>> = {
  [JobKind.IMAGE]: { path: "images", name: "image", object: "image.job", outputs: "images" },
  [JobKind.VIDEO]: { path: "videos", name: "video", object: "video.job", outputs: "videos" },
  [JobKind.MUSIC]: { path: "music", name: "music", object: "music.job", outputs: "clips" },
};

/** The public names of states. */
export const statusNames: Readonly<Record<Status, "queued" | "running" | "completed" | "failed">> =
  {
    [JobStatus.QUEUED]: "queued",
    [JobStatus.RUNNING]: "running",
    [JobStatus.COMPLETED]: "completed",
    [JobStatus.FAILED]: "failed",
  };

/** The names of a job's kind. Throws where the media service sent none. */
function namesOf(kind: JobKind): JobNames {
  const names = kind === JobKind.UNSPECIFIED ? undefined : jobNames[kind];
  if (!names) throw new Error("a job without a kind");
  return names;
}

/** The public name of a state. Throws where the media service sent none. */
export function statusName(status: JobStatus): (typeof statusNames)[Status] {
  const name = status === JobStatus.UNSPECIFIED ? undefined : statusNames[status];
  if (!name) throw new Error("a job without a state");
  return name;
}

/** True exactly for `completed` and `failed`. */
export function isTerminal({ status }: Job): boolean {
  return status === JobStatus.COMPLETED || status === JobStatus.FAILED;
}

/** A private file of a job's outputs. */
interface OutputItem {
  id: string;
  /** Fetched with the key that made the job. `?download=1` gives attachment disposition. */
  url: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  width?: number;
  height?: number;
  durationSeconds?: number;
  /** When the file expires. Absent: it is kept for ever. */
  expiresAt?: string;
}

/** The public document of a job. `baseUrl` ends in `/v1`. Outputs are under `images`, `videos` or `clips`. */
export function toJobDocument(job: Job, baseUrl: string): Record<string, unknown> {
  const names = namesOf(job.kind);
  const terminal = isTerminal(job);
  return {
    id: job.jobId,
    jobId: job.jobId,
    object: names.object,
    status: statusName(job.status),
    statusUrl: `${baseUrl}/${names.path}/generations/${job.jobId}`,
    terminal,
    model: job.model,
    modelId: job.model,
    modelName: job.modelName,
    ...(job.mode === "" ? {} : { mode: job.mode }),
    progress: job.progress,
    ...(job.kind === JobKind.IMAGE ? { n: job.outputCount } : {}),
    ...(job.size === "" ? {} : { size: job.size }),
    ...(job.durationSeconds === 0 ? {} : { durationSeconds: job.durationSeconds }),
    ...(job.resolution === "" ? {} : { resolution: job.resolution }),
    ...(job.aspectRatio === "" ? {} : { aspectRatio: job.aspectRatio }),
    creditsReserved: Number(job.creditsReserved),
    ...(terminal ? { creditsCharged: Number(job.creditsCharged ?? 0n) } : {}),
    createdAt: isoTimeOrNull(job.createTime),
    startedAt: isoTimeOrNull(job.startTime),
    ...(job.queuePosition === undefined ? {} : { queuePosition: job.queuePosition }),
    ...(job.estimatedStartTime ? { estimatedStartAt: isoTimeOrNull(job.estimatedStartTime) } : {}),
    completedAt: isoTimeOrNull(job.completeTime),
    ...(job.expireTime ? { expiresAt: isoTimeOrNull(job.expireTime) } : {}),
    ...(job.seed === undefined ? {} : { seed: job.seed }),
    ...(Object.keys(job.metadata).length === 0 ? {} : { metadata: job.metadata }),
    ...(job.retryOf === "" ? {} : { retryOf: job.retryOf }),
    [names.outputs]: job.outputs.map((file) => toOutputItem(file, job, names, baseUrl)),
    error: job.status === JobStatus.FAILED ? toJobError(job.error) : null,
  };
}

function toOutputItem(file: OutputFile, job: Job, names: JobNames, baseUrl: string): OutputItem {
  const expiresAt = isoTimeOrNull(job.expireTime);
  return {
    id: file.fileId,
    url: `${baseUrl}/${names.path}/generations/${job.jobId}/files/${file.fileId}`,
    mimeType: file.mimeType,
    sizeBytes: Number(file.sizeBytes),
    sha256: file.sha256,
    ...(file.width === 0 ? {} : { width: file.width }),
    ...(file.height === 0 ? {} : { height: file.height }),
    ...(file.durationSeconds === 0 ? {} : { durationSeconds: file.durationSeconds }),
    ...(expiresAt === null ? {} : { expiresAt }),
  };
}

// A reason of a newer build is shown as a general failure.
function toJobError(error: JobError | undefined) {
  const reason = (error && knownReason(error.reason)) ?? ErrorReason.GENERATION_FAILED;
  const row = errorRow(reason);
  return {
    message: error?.message || row.message,
    type: row.type,
    code: row.code,
    param: error?.param || null,
  };
}

// A service of a later release may know others.
const jobKinds: Partial<Record<JobKind, JobNames>> = jobNames;
const jobStatuses: Partial<Record<JobStatus, string>> = statusNames;

/** The kind and the state of a job, for operators. A kind or state that a later release knows is "". */
export function jobWords({ kind, status }: Job): { kind: string; status: string } {
  return { kind: jobKinds[kind]?.name ?? "", status: jobStatuses[status] ?? "" };
}

/** A job as operators see it in the console. */
export function operatorsJobDocument(job: Job) {
  return {
    object: "job",
    id: job.jobId,
    accountId: job.accountId,
    keyId: job.keyId,
    ...jobWords(job),
    model: job.model,
    progress: job.progress,
    creditsReserved: job.creditsReserved,
    creditsCharged: job.creditsCharged ?? null,
    createdAt: isoTimeOrNull(job.createTime),
    startedAt: isoTimeOrNull(job.startTime),
    completedAt: isoTimeOrNull(job.completeTime),
    retryOf: job.retryOf || null,
    error: job.error?.message ?? null,
    errorCode: job.error ? toJobError(job.error).code : null,
  };
}

/** A job as the command prints it for scripts. */
export function printedJob(job: Job) {
  return {
    jobId: job.jobId,
    ...jobWords(job),
    model: job.model,
    progress: job.progress,
    creditsReserved: job.creditsReserved,
    creditsCharged: job.creditsCharged,
    createdAt: isoTime(job.createTime),
    startedAt: isoTime(job.startTime) || undefined,
    completedAt: isoTime(job.completeTime) || undefined,
    retryOf: job.retryOf || undefined,
    error: job.error?.message,
  };
}
