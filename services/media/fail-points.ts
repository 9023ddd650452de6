// Names the places at which crash tests stop a process in the life of a job.

/**
 * The places between two steps of a job's life, in their order. A process can die there, with the one step done and the other not.
 * Every step has one, and the crash tests stop the process at each of them.
 */
export const failPoints = [
  /** Submission: the job is written down, nothing else. */
  "inserted",
  /** The hold is open, nothing else is done. */
  "reserved",
  /** References are in the account's storage, but not in the job. */
  "imported",
  /** References are in the job, but it is not accepted. */
  "attached",
  "accepted",
  "published",
  /** The job is rejected. Where its price was held, it still is. */
  "rejected",
  /** Worker: the job is claimed, nothing is sent. */
  "claimed",
  /** It is written down that a request goes to the upstream, but the request was not sent. */
  "sending",
  /** The upstream has accepted, but its id is not stored. */
  "upstream-accepted",
  "resumable",
  /** An object is stored, but not in the job. */
  "stored",
  /** The outputs have become the job's. */
  "won",
  /** Charged, but not completed. */
  "settled",
  "completed",
  /** The generation failed. The hold is still open. */
  "lost",
  /** The hold is released, but the job has not failed yet. */
  "released",
  "failed",
  /** The caller cancelled the job. The hold is open, and a worker may be working on it. */
  "cancelled",
  /** The caller deleted the job. Its bytes and pins still exist. */
  "deleted",
  /** The bytes and pins of a deleted job are gone. */
  "erased",
  /** A stopping worker's job is claimable again. */
  "handed-back",
  /** No upstream took the job, so it waits in the queue. */
  "waiting",
  /** The job's wait is over, but no worker was woken. */
  "offered",
  /** The references of an ended job were unpinned. */
  "unpinned",
  /** A job's end is among the webhooks, but the job does not show that. */
  "announced",
  /** A receiver has answered a webhook, but the answer is not written down. */
  "sent",
  /** Retention: the record is gone, its objects are not. */
  "forgotten",
] as const;

/** One of them. */
export type FailPoint = (typeof failPoints)[number];

/** Called with the place that the work has reached. Must return at once. In production there is no listener. */
export type FailPoints = (point: FailPoint) => void;

/** No listener. */
export const noFailPoints: FailPoints = () => {};
