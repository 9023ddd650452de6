import { equals } from "@bufbuild/protobuf";
import type { Clock } from "#kit/clock.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import {
  type Job as JobMessage,
  JobSchema,
  JobStatus,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { watchHeartbeatMs, watchPollMs } from "../limits.ts";
import type { JobChanges } from "./changes.ts";
import type { Job } from "./job.ts";
import { jobMessage } from "./messages.ts";

/** What watching needs. */
export interface WatchContext {
  clock: Clock;
  changes: JobChanges;
  /** The job, where the watcher may see it. */
  find(): Promise<Job | undefined>;
  /** Aborts when the watcher leaves, or this process stops answering. */
  signal: AbortSignal;
}

/**
 * The job now and at each change that shows, until it is terminal; undefined every 15 s of silence. Changes made in this
 * process are seen at once, those of others within a second. Refuses with JOB_NOT_FOUND, also where it goes meanwhile.
 */
export async function* watchJob(
  jobId: string,
  { clock, changes, find, signal }: WatchContext,
): AsyncGenerator<JobMessage | undefined, void> {
  let changed = Promise.withResolvers<void>();
  const off = changes.on(jobId, () => changed.resolve());
  try {
    let last: JobMessage | undefined;
    let seen: Job | undefined;
    let spokeAt = clock.now();
    while (!signal.aborted) {
      const job = await find();
      if (!job || job.state === "rejected") refuse(ErrorReason.JOB_NOT_FOUND);
      // The same look as the last time needs no comparison.
      const message = last && job === seen ? last : jobMessage(job);
      seen = job;
      if (!last || (message !== last && !equals(JobSchema, last, message))) {
        last = message;
        spokeAt = clock.now();
        yield message;
        if (isOver(message)) return;
      } else if (clock.now() - spokeAt >= watchHeartbeatMs) {
        spokeAt = clock.now();
        yield undefined;
      }
      await changeOrPause(changed.promise, clock, signal);
      changed = Promise.withResolvers();
    }
  } finally {
    off();
  }
}

function isOver({ status }: JobMessage): boolean {
  return status === JobStatus.COMPLETED || status === JobStatus.FAILED;
}

/** Resolves at a change, after a second, or when `signal` aborts. */
async function changeOrPause(
  change: Promise<void>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const pause = clock.sleep(watchPollMs, AbortSignal.any([signal, over.signal])).catch(() => {});
  await Promise.race([change, pause]);
  over.abort();
}
