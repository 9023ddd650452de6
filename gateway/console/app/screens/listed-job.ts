// Says what the console knows of a job in a list: whose it is, and its state.

import { session } from "../session.ts";
import type { Job } from "../types.ts";

/** A job of the list, with `keyId` where the reader may see other keys' jobs. */
export type ListedJob = Job & { keyId?: string };

/** Only the key that made a job has its previews and actions. */
export const isOwn = ({ keyId }: ListedJob) =>
  keyId === undefined || keyId === session.value?.keyId;

/** The API calls a cancelled job failed, because it has only four states. The console calls it cancelled. */
export const shownStatus = (status: string, errorCode: string | null | undefined) =>
  errorCode === "job_cancelled" ? "cancelled" : status;

export const statusOf = ({ status, error }: Job) => shownStatus(status, error?.code);
