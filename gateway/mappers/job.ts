import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason, errorRow, knownReason } from "#kit/errors.ts";
import {
  type Job,
  type JobError,
  JobKind,
  JobStatus,
  type OutputFile,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { familyOf, type JobFamily, statusName } from "../job-kinds.ts";

/** A private file of a job's outputs. */
export interface OutputItem {
  id: string;
  /** Fetched with the key that made the job; `?download=1` gives attachment disposition. */
  url: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  width?: number;
  height?: number;
  durationSeconds?: number;
  /** When it goes; absent: it is kept for ever. */
  expiresAt?: string;
}

/** The public document of a job; `baseUrl` ends in `/v1`. Outputs are under `images`, `videos` or `clips`. */
export function toJobDocument(job: Job, baseUrl: string): Record<string, unknown> {
  const family = familyOf(job.kind);
  const terminal = job.status === JobStatus.COMPLETED || job.status === JobStatus.FAILED;
  return {
    id: job.jobId,
    jobId: job.jobId,
    object: family.object,
    status: statusName(job.status),
    statusUrl: `${baseUrl}/${family.path}/generations/${job.jobId}`,
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
    createdAt: iso(job.createTime),
    startedAt: iso(job.startTime),
    completedAt: iso(job.completeTime),
    ...(job.expireTime ? { expiresAt: iso(job.expireTime) } : {}),
    ...(job.retryOf === "" ? {} : { retryOf: job.retryOf }),
    [family.outputs]: job.outputs.map((file) => toOutputItem(file, job, family, baseUrl)),
    error: job.status === JobStatus.FAILED ? toJobError(job.error) : null,
  };
}

function toOutputItem(file: OutputFile, job: Job, family: JobFamily, baseUrl: string): OutputItem {
  const expiresAt = iso(job.expireTime);
  return {
    id: file.fileId,
    url: `${baseUrl}/${family.path}/generations/${job.jobId}/files/${file.fileId}`,
    mimeType: file.mimeType,
    sizeBytes: Number(file.sizeBytes),
    sha256: file.sha256,
    ...(file.width === 0 ? {} : { width: file.width }),
    ...(file.height === 0 ? {} : { height: file.height }),
    ...(file.durationSeconds === 0 ? {} : { durationSeconds: file.durationSeconds }),
    ...(expiresAt === null ? {} : { expiresAt }),
  };
}

// A reason of a newer build reads as what every failed job is.
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

function iso(time: Timestamp | undefined): string | null {
  return time ? new Date(timestampMs(time)).toISOString() : null;
}
