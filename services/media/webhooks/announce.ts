import { toJobDocument } from "#common/documents/job-document.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { FailPoints } from "../fail-points.ts";
import { isTerminal, type Job, wasCancelled } from "../jobs/job.ts";
import { jobMessage } from "../jobs/messages.ts";
import type { JobStore } from "../jobs/store.ts";
import { announceBatch, maxFreeWebhooks, trimmedAtOnce } from "./limits.ts";
import type { WebhookStore } from "./store.ts";
import { newWebhook, type Webhook, type WebhookType } from "./webhook.ts";

/** What announcing needs. */
export interface AnnounceContext {
  clock: Clock;
  jobs: JobStore;
  store: WebhookStore;
  failPoints: FailPoints;
}

/**
 * Writes the end of a job down among the webhooks, then notes in the job that it is. Between the two a process may die, or
 * another may do the same: the webhook's id is made of the job's, so there is one, and the job itself says until then that
 * its end is to be told. So no end is lost, wherever a process dies.
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

/** What is told of the end of a job; undefined where there is no such job any more, or nothing is to be told of it. */
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

/** Writes a webhook down, in the place of the account's oldest where it has as many as may cost it nothing. */
export async function writeDown(
  webhook: Webhook,
  { store }: Pick<AnnounceContext, "store">,
): Promise<void> {
  await store.insert(webhook);
  const { accountId, type } = webhook;
  // Of completed jobs there are as many as were paid for.
  if (type === "job.completed") return;
  await store.trim({ accountId, type, newest: maxFreeWebhooks, limit: trimmedAtOnce });
}

/**
 * Announces jobs that have ended and are not announced, at most a batch of them; true where more may be left. Their writes
 * are made together, for each alone waits for the disk.
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
