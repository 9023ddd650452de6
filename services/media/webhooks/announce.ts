// Writes a webhook for each job that has ended, exactly once. `deliver.ts` sends it.

import { toJobDocument } from "#common/documents/job-document.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { FailPoints } from "../fail-points.ts";
import { isTerminal, type Job, wasCancelled } from "../jobs/job.ts";
import { jobMessage } from "../jobs/messages.ts";
import type { JobStore } from "../jobs/store.ts";
import { announceBatch, maxFreeWebhooks, trimmedAtOnce } from "./limits.ts";
import type { WebhookStore } from "./store.ts";
import { newWebhook, type Webhook, type WebhookType } from "./webhook.ts";

/** Needs of announcing. */
export interface AnnounceContext {
  clock: Clock;
  jobs: JobStore;
  store: WebhookStore;
  failPoints: FailPoints;
}

/**
 * Writes a webhook for the end of a job, then notes in the job that the webhook exists. A process may die between the two, or
 * another process may do the same. The webhook's id derives from the job's id, so there is only one webhook. Until the note is
 * made, the search for ended jobs finds it again. So no end is lost. Other code delivers the webhook.
 */
export async function announce(job: Job, context: AnnounceContext): Promise<void> {
  const { clock, jobs, failPoints } = context;
  const { jobId, accountId, keyId, webhook } = job;
  if (!webhook) return;
  const type = typeOf(job);
  const body = bodyOf(job, webhook, clock.now());
  const webhookId = webhookIdOf(jobId);
  const { url } = webhook;
  const event = { webhookId, accountId, keyId, jobId, type, url, body };
  await writeDown(newWebhook(event, clock.now()), context);
  failPoints("announced");
  await jobs.apply(jobId, { kind: "announced" });
}

/** The webhook for the end of a job. Undefined where the job is gone, has not ended, or asked for no webhook. */
export function messageOf(job: Job | undefined, now: number): string | undefined {
  return job?.webhook && isTerminal(job) ? bodyOf(job, job.webhook, now) : undefined;
}

function bodyOf(job: Job, { baseUrl }: NonNullable<Job["webhook"]>, now: number): string {
  return JSON.stringify({
    type: typeOf(job),
    timestamp: new Date(job.completedAt ?? now).toISOString(),
    data: toJobDocument(jobMessage(job), baseUrl),
  });
}

/** Stores a webhook. Where the account has the most free webhooks that it may have, the oldest is deleted. */
export async function writeDown(
  webhook: Webhook,
  { store }: Pick<AnnounceContext, "store">,
): Promise<void> {
  await store.insert(webhook);
  const { accountId, type } = webhook;
  // There are only as many completed jobs as were paid for.
  if (type === "job.completed") return;
  await store.trim({ accountId, type, newest: maxFreeWebhooks, limit: trimmedAtOnce });
}

/**
 * Announces jobs that have ended and are not announced, at most a batch of them. True where more may be left. The writes run
 * together, because each of them waits for the disk.
 */
export async function announceSome(context: AnnounceContext): Promise<boolean> {
  const ended = await context.jobs.unannounced(announceBatch);
  await Promise.all(ended.map((job) => announce(job, context)));
  return ended.length === announceBatch;
}

function typeOf(job: Job): WebhookType {
  if (job.state === "completed") return "job.completed";
  return wasCancelled(job) ? "job.cancelled" : "job.failed";
}

function webhookIdOf(jobId: string): string {
  return jobId.replace(/^job_/, "evt_");
}
