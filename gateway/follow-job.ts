// Follows a job at media until it ends, also across replicas that stop. The event stream and calls that wait for images use it.

import { equals, type MessageInitShape } from "@bufbuild/protobuf";
import { isTerminal } from "#common/documents/job-document.ts";
import { ErrorReason, isRefusal, type RefusalError, unavailable } from "#kit/base/errors.ts";
import {
  type Job,
  JobSchema,
  type WatchJobRequestSchema,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "./context.ts";
import { deadlinesMs, followLimits } from "./limits.ts";
import type { callOptions } from "./request.ts";

/**
 * A job now and at each change, until it is terminal. Undefined for a heartbeat. Where a watch ends before that (its replica stops, or
 * is gone), another replica continues it. An unchanged state is not repeated. Every watch begins with the job's present state, so no
 * end is missed. Rejects with the refusal of a watch, and with the signal's reason. Rejects with SERVICE_UNAVAILABLE only after {@link
 * followLimits} without a message of media.
 */
export async function* followJob(
  edge: Pick<Edge, "peers" | "clock">,
  asked: MessageInitShape<typeof WatchJobRequestSchema>,
  options: ReturnType<typeof callOptions>,
): AsyncGenerator<Job | undefined, void> {
  const { clock } = edge;
  const { signal } = options;
  const endsAtMs = clock.steady() + deadlinesMs.watch;
  let last: Job | undefined;
  let heardAtMs = clock.steady();
  for (let pauseMs: number = followLimits.minPauseMs; ; ) {
    const begunAtMs = clock.steady();
    const timeoutMs = Math.max(1, endsAtMs - begunAtMs);
    let fault: RefusalError | undefined;
    try {
      for await (const { job } of edge.peers.media.watchJob(asked, { ...options, timeoutMs })) {
        heardAtMs = clock.steady();
        const isNews = job && !(last && equals(JobSchema, last, job));
        if (isNews) last = job;
        yield isNews ? job : undefined;
      }
    } catch (error) {
      if (signal.aborted || !isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
      fault = error;
    }
    if (last && isTerminal(last)) return;
    const patienceMs = last ? followLimits.patienceMs : followLimits.firstPatienceMs;
    const nowMs = clock.steady();
    if (nowMs - heardAtMs >= patienceMs || nowMs >= endsAtMs) throw fault ?? unavailable();
    // A replica that stops answers each watch with the job's state and ends it at once.
    if (nowMs - begunAtMs >= followLimits.longWatchMs) pauseMs = followLimits.minPauseMs;
    await clock.sleep(pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, followLimits.maxPauseMs);
  }
}
