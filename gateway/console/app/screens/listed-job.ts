import { session } from "../session.ts";
import type { Job } from "../types.ts";

/** A job of the list; `keyId` where the key may see those of others. */
export type ListedJob = Job & { keyId?: string };

/** Previews stay with the key that made them, and so do its actions. */
export const isOwn = ({ keyId }: ListedJob) =>
  keyId === undefined || keyId === session.value?.keyId;

/** A job that its key cancelled has failed, by the API's four states; the list calls it what it is. */
export const statusOf = (job: Job) =>
  job.error?.code === "job_cancelled" ? "cancelled" : job.status;
