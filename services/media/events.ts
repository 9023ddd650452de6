// Logs and counts what happens to jobs, all of it in this one place, so that no prompt or key gets into a log. `files/events.ts`
// does the same for uploads.

import { reasonName } from "#kit/base/errors.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Job, JobFailure, MediaKind } from "./jobs/job.ts";
import { wasAnswerLost } from "./jobs/lost-answer.ts";

/** Counts and logs of media's jobs. Never a prompt, a key, or anything that a caller named. */
export interface JobEvents {
  /** A submission was answered with its job. `replayed`: the job existed already. */
  submitted(job: Job, replayed: boolean): void;
  /** A submission was not accepted, after it was written down. */
  rejected(job: Job, failure: JobFailure): void;
  /** A worker has claimed a job. */
  claimed(job: Job): void;
  /** A worker may no longer change a job that it runs. */
  leaseLost(job: Job): void;
  /** A job was handed back, put off because its upstream's answer is unknown, refused by its upstream, or not sent while it rests. */
  givenBack(job: Job, why: "stopping" | "unknown" | "not_taken" | "resting"): void;
  /** A job is terminal. */
  ended(job: Job): void;
  /** A worker stopped: its job was cancelled. */
  stoppedCancelled(job: Job): void;
  /** An upstream was asked to cancel a cancelled job's task. `isTaken`: it will not go on with it. */
  cancelledUpstream(job: Job, isTaken: boolean): void;
  /** Its caller deleted a job. */
  deleted(job: Job): void;
  /** A job's hold did not end as the job did: an operator ended it, or billing has lost it. */
  holdEndedOtherwise(job: Job, charged: bigint): void;
  /** The sweeper drove on a job that no worker had. */
  swept(state: Job["state"]): void;
  /** A record and its outputs were removed because their time was over. */
  forgotten(job: Job): void;
  /** A blob that no record names was removed. */
  collected(blobKey: string): void;
  /** Jobs of a kind that this process works on now. */
  running(kind: MediaKind, jobs: number): void;
  /** The number of jobs of a kind in a state, and the age of the oldest, over all processes. */
  standing(kind: MediaKind, state: Job["state"], jobs: number, oldestMs: number): void;
  /** A made file has a manifest of its origin now, or has none added: it has one already, or its layout has no place for one. */
  marked(job: Job, outcome: "signed" | "has_one" | "layout"): void;
  /** A made file is stored without the manifest that the catalog asks for. */
  markFailed(job: Job, fault: string, error: unknown): void;
  /** A step failed and will be tried again. */
  trouble(what: string, jobId: string | undefined, error: unknown): void;
}

/** Seconds, from a built-in image to a day in the queue. */
const waitBuckets = [0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400];

/** Makes the events of one service. The API and the worker of one process share them. */
export function createJobEvents(deps: { log: Logger; metrics: Metrics }): JobEvents {
  const { log } = deps;
  const count = countersOf(deps.metrics);
  return {
    submitted(job, replayed) {
      count.submissions.of(job.spec.kind, replayed ? "replayed" : "accepted").value++;
    },
    rejected(job, failure) {
      count.submissions.of(job.spec.kind, "rejected").value++;
      log.info({ ...facts(job), reason: reasonName(failure.reason) }, "submission rejected");
    },
    claimed(job) {
      const { kind } = job.spec;
      const how = howClaimed(job);
      count.attempts.of(kind, how).value++;
      if (how === "first") count.waits.of(kind).observe(since(job.createdAt, job.startedAt));
      log.info({ ...facts(job), fence: job.fence, attempts: job.attempts }, "job claimed");
    },
    leaseLost(job) {
      count.leasesLost.of(job.spec.kind).value++;
      log.warn({ ...facts(job), fence: job.fence }, "a running job was lost to another worker");
    },
    givenBack(job, why) {
      count.givenBack.of(job.spec.kind, why).value++;
      log.info({ ...facts(job), why }, "job given back");
    },
    ended(job) {
      const { kind } = job.spec;
      const outcome = outcomeOf(job);
      count.ended.of(kind, outcome).value++;
      count.runs.of(kind, outcome).observe(since(job.startedAt, job.completedAt));
      if (job.charged) count.charged.of(kind).value += Number(job.charged);
      log.info({ ...facts(job), outcome, attempts: job.attempts }, "job ended");
    },
    stoppedCancelled: (job) => log.info(facts(job), "work on a cancelled job stopped"),
    cancelledUpstream: (job, isTaken) =>
      log.info({ ...facts(job), isTaken }, "a task was cancelled upstream"),
    deleted: (job) => log.info(facts(job), "job deleted"),
    holdEndedOtherwise(job, charged) {
      log.error({ ...facts(job), charged: String(charged) }, "a hold ended otherwise than its job");
    },
    swept(state) {
      count.swept.of(state).value++;
    },
    forgotten(job) {
      count.removed.of("job").value++;
      log.debug(facts(job), "job forgotten");
    },
    collected(blobKey) {
      count.removed.of("blob").value++;
      log.info({ blobKey }, "unreferenced blob removed");
    },
    running(kind, jobs) {
      count.running.of(kind).value = jobs;
    },
    standing(kind, state, jobs, oldestMs) {
      count.standing.of(kind, state).value = jobs;
      count.ages.of(kind, state).value = oldestMs / 1_000;
    },
    marked(job, outcome) {
      count.marks.of(job.spec.kind, outcome).value++;
    },
    markFailed(job, fault, error) {
      count.marks.of(job.spec.kind, "failed").value++;
      log.error(
        { ...facts(job), fault, err: error },
        "a file is stored without content credentials",
      );
    },
    trouble: (what, jobId, error) => log.warn({ jobId, err: error }, what),
  };
}

function countersOf(metrics: Metrics) {
  return {
    submissions: metrics.counter(
      "genmesh_media_submissions_total",
      "Submissions of jobs that were written down, by outcome.",
      ["kind", "outcome"],
    ),
    attempts: metrics.counter(
      "genmesh_media_attempts_total",
      "Jobs claimed by a worker: for the first time, again, with a task upstream to resume, or with a generation to be asked for again.",
      ["kind", "how"],
    ),
    leasesLost: metrics.counter(
      "genmesh_media_leases_lost_total",
      "Running jobs that were lost to another worker.",
      ["kind"],
    ),
    givenBack: metrics.counter(
      "genmesh_media_given_back_total",
      "Jobs that went back to the queue, by the reason.",
      ["kind", "why"],
    ),
    ended: metrics.counter(
      "genmesh_media_jobs_ended_total",
      "Jobs by their end; answer_lost: failed, because the upstream's answer was lost.",
      ["kind", "outcome"],
    ),
    charged: metrics.counter("genmesh_media_charged_credits_total", "Credits charged for jobs.", [
      "kind",
    ]),
    swept: metrics.counter(
      "genmesh_media_swept_total",
      "Jobs without a worker that the sweep drove on, by the state that it found.",
      ["state"],
    ),
    removed: metrics.counter(
      "genmesh_media_removed_total",
      "Jobs removed because their time was over, and blobs that no record names.",
      ["what"],
    ),
    marks: metrics.counter(
      "genmesh_media_marks_total",
      "Made files that should get content credentials, by what became of it; failed: stored without.",
      ["kind", "outcome"],
    ),
    running: metrics.gauge("genmesh_media_running_jobs", "Jobs that this process works on now.", [
      "kind",
    ]),
    standing: metrics.gauge("genmesh_media_jobs", "Open jobs of all processes, by state.", [
      "kind",
      "state",
    ]),
    ages: metrics.gauge(
      "genmesh_media_oldest_job_seconds",
      "Age of the oldest open job of all processes, by state.",
      ["kind", "state"],
    ),
    waits: metrics.histogram(
      "genmesh_media_queue_seconds",
      "From a job's acceptance to its first work.",
      ["kind"],
      waitBuckets,
    ),
    runs: metrics.histogram(
      "genmesh_media_run_seconds",
      "From a job's first work to its end.",
      ["kind", "outcome"],
      waitBuckets,
    ),
  };
}

/** In the words of the job's history. */
function howClaimed({ fence, resumeId, events }: Job): string {
  if (fence === 1) return "first";
  if (resumeId !== undefined) return "resumed";
  return events.at(-1)?.name === "asked_again" ? "asked_again" : "again";
}

function outcomeOf(job: Job): string {
  if (!job.failure) return "completed";
  return wasAnswerLost(job) ? "answer_lost" : reasonName(job.failure.reason).toLowerCase();
}

function since(from: number | undefined, to: number | undefined): number {
  return from === undefined || to === undefined ? 0 : Math.max(0, to - from) / 1_000;
}

function facts({ jobId, accountId, spec }: Job) {
  return { jobId, accountId, kind: spec.kind, model: spec.model };
}
