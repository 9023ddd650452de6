// Makes a short text of what callers see of a job. `watch.ts` compares marks, and reads only jobs whose mark has changed.

import { isParked, type JobHead, type JobState } from "./job.ts";

/** The fields of a job that a look at many jobs reads. */
export interface MarkedFields
  extends Pick<JobHead, "upstreamIndex" | "progress" | "startedAt" | "completedAt" | "expiresAt"> {
  state: JobState;
  isParked: boolean;
}

/**
 * A job's mark. While it stays the same, so does everything that callers see of the job, and the line in which the job waits. Every
 * shown value that may change belongs in here (`jobMessage`, `QueuePlaces`). Values that never change do not.
 */
export function markOf(job: JobHead): string {
  return markFrom({ ...job, isParked: isParked(job) });
}

/** The mark of a job of which only these fields were read. */
export function markFrom(fields: MarkedFields): string {
  const { state, isParked, upstreamIndex, progress, startedAt, completedAt, expiresAt } = fields;
  return [state, isParked, upstreamIndex, progress, startedAt, completedAt, expiresAt].join(" ");
}
