// Turns jobs into messages of the wire, for callers and for operators.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type JobEvent as EventMessage,
  JobEventSchema,
  JobKind,
  type Job as JobMessage,
  JobSchema,
  JobStatus,
  JobWait_Refusal,
  JobWaitSchema,
  type JobWait as WaitMessage,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Refusal } from "../../upstreams/media/port.ts";
import {
  isParked,
  isTerminal,
  type Job,
  type JobWait,
  type MediaKind,
  type ShownState,
  shownState,
} from "./job.ts";
import type { QueuePlace } from "./waiting-jobs.ts";

const kinds = {
  image: JobKind.IMAGE,
  video: JobKind.VIDEO,
  music: JobKind.MUSIC,
} as const satisfies Record<MediaKind, JobKind>;

const statuses = {
  queued: JobStatus.QUEUED,
  running: JobStatus.RUNNING,
  completed: JobStatus.COMPLETED,
  failed: JobStatus.FAILED,
} as const satisfies Record<ShownState, JobStatus>;

/** The kind in a message's field. Undefined where it is unset or of a newer build. */
export function kindOf(message: JobKind): MediaKind | undefined {
  return (Object.keys(kinds) as MediaKind[]).find((kind) => kinds[kind] === message);
}

/** The state in a message's field. Undefined where it is unset or of a newer build. */
export function statusOf(message: JobStatus): ShownState | undefined {
  return (Object.keys(statuses) as ShownState[]).find((state) => statuses[state] === message);
}

/** A job as callers see it, with its place where it waits. A rejected job is never shown. */
export function jobMessage(job: Job, place?: QueuePlace): JobMessage {
  const { spec, failure } = job;
  const state = shownState(job.state);
  if (!state) throw new TypeError("a rejected job is never shown");
  const isOver = isTerminal(job);
  return create(JobSchema, {
    jobId: job.jobId,
    kind: kinds[spec.kind],
    status: statuses[state],
    model: spec.model,
    modelName: spec.modelName,
    mode: spec.mode,
    progress: job.state === "completed" ? 100 : job.progress,
    creditsReserved: spec.price,
    ...(isOver ? { creditsCharged: job.charged ?? 0n } : {}),
    ...shapeOf(job),
    outputs: job.state === "completed" ? job.outputs.map(outputMessage) : [],
    ...(job.state === "failed" && failure
      ? {
          error: {
            reason: failure.reason,
            message: failure.message,
            ...(failure.param === undefined ? {} : { param: failure.param }),
          },
        }
      : {}),
    createTime: timestampFromMs(job.createdAt),
    ...(job.startedAt === undefined ? {} : { startTime: timestampFromMs(job.startedAt) }),
    ...(job.completedAt === undefined ? {} : { completeTime: timestampFromMs(job.completedAt) }),
    ...(job.expiresAt === undefined ? {} : { expireTime: timestampFromMs(job.expiresAt) }),
    retryOf: job.retryOf ?? "",
    accountId: job.accountId,
    keyId: job.keyId,
    ...(spec.request.seed === undefined ? {} : { seed: spec.request.seed }),
    metadata: Object.fromEntries(spec.metadata ?? []),
    ...(place ? { queuePosition: place.position } : {}),
    ...(place?.startsAt === undefined
      ? {}
      : { estimatedStartTime: timestampFromMs(place.startsAt) }),
  });
}

function shapeOf({ spec: { request } }: Job) {
  switch (request.kind) {
    case "image":
      return {
        outputCount: request.count,
        size: request.size ?? "",
        resolution: request.resolution ?? "",
        aspectRatio: request.aspectRatio ?? "",
      };
    case "video":
      return {
        outputCount: 1,
        durationSeconds: request.durationSeconds,
        resolution: request.resolution,
        aspectRatio: request.aspectRatio,
      };
    case "music":
      return { outputCount: 1 };
  }
}

function outputMessage(output: Job["outputs"][number]) {
  const { fileId, mimeType, sizeBytes, sha256, width, height, durationSeconds } = output;
  const size = BigInt(sizeBytes);
  return { fileId, mimeType, sizeBytes: size, sha256, width, height, durationSeconds };
}

const refusals = {
  too_many_requests: JobWait_Refusal.TOO_MANY_REQUESTS,
  unavailable: JobWait_Refusal.UNAVAILABLE,
  unreachable: JobWait_Refusal.UNREACHABLE,
  account_empty: JobWait_Refusal.ACCOUNT_EMPTY,
  denied: JobWait_Refusal.DENIED,
} as const satisfies Record<Refusal, JobWait_Refusal>;

/** The reason why a job waits, or waited, for an operator. A job that runs or has ended is not offered to any upstream again. */
export function waitMessage({ refusal, times, until }: JobWait, job: Job): WaitMessage {
  return create(JobWaitSchema, {
    refusal: refusals[refusal],
    times,
    ...(until === undefined || !isParked(job) ? {} : { nextTryTime: timestampFromMs(until) }),
  });
}

/** A job's history for an operator. */
export function eventMessages(job: Job): EventMessage[] {
  return job.events.map(({ at, name, detail }) =>
    create(JobEventSchema, { time: timestampFromMs(at), state: name, detail }),
  );
}
