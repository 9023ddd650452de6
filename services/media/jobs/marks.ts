import { isParked, type JobHead, type JobState } from "./job.ts";

/** What a look at many jobs reads of each. */
export interface MarkedFields
  extends Pick<JobHead, "upstreamIndex" | "progress" | "startedAt" | "completedAt" | "expiresAt"> {
  state: JobState;
  isParked: boolean;
}

/**
 * A job's mark: while it stays the same, so does all that callers see of the job, and in which line the job waits. All that is shown
 * and may change belongs in here (`jobMessage`, `QueuePlaces`); what never changes does not.
 */
export function markOf(job: JobHead): string {
  return markFrom({ ...job, isParked: isParked(job) });
}

/** The mark of a job of which no more was read. */
export function markFrom(fields: MarkedFields): string {
  const { state, isParked, upstreamIndex, progress, startedAt, completedAt, expiresAt } = fields;
  return [state, isParked, upstreamIndex, progress, startedAt, completedAt, expiresAt].join(" ");
}
