/**
 * The places between two steps of a job's life, in their order: where a process can die with the one done and the other
 * not. Every step has one; the crash tests stop the process at each of them.
 */
export const failPoints = [
  /** Submission: written down, nothing else. */
  "inserted",
  /** The hold stands, nothing else is done. */
  "reserved",
  /** References are in the account's storage, the job does not know. */
  "imported",
  /** The job knows; it is not accepted. */
  "attached",
  "accepted",
  "published",
  /** The job is rejected; where its price was held, it still is. */
  "rejected",
  /** Worker: claimed, nothing sent. */
  "claimed",
  /** It is written down that a request goes to the upstream, which has not gone. */
  "sending",
  /** The upstream has accepted, its id is not stored. */
  "upstream-accepted",
  "resumable",
  /** An object is stored, the job does not know. */
  "stored",
  /** The outputs have won. */
  "won",
  /** Charged, not completed. */
  "settled",
  "completed",
  /** The generation failed; the hold stands. */
  "lost",
  /** Released, not failed. */
  "released",
  "failed",
  /** Its caller cancelled it; the hold stands, and a worker may be at it. */
  "cancelled",
  /** Its caller deleted it; its bytes and pins are still there. */
  "deleted",
  /** They are not. */
  "erased",
  /** A stopping worker's job is claimable again. */
  "handed-back",
  /** No upstream would take it: the job waits in the queue. */
  "waiting",
  /** Its wait is over, no worker was woken. */
  "offered",
  /** The references of an ended job were let go of. */
  "unpinned",
  /** A job's end is among the webhooks, the job does not know. */
  "announced",
  /** A receiver has answered a webhook, which is not written down. */
  "sent",
  /** Retention: the record is gone, its objects are not. */
  "forgotten",
] as const;

/** One of them. */
export type FailPoint = (typeof failPoints)[number];

/** Is told where the work stands; must return at once. In production there is no listener. */
export type FailPoints = (point: FailPoint) => void;

/** No listener. */
export const noFailPoints: FailPoints = () => {};
