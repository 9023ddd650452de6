import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { FairShare } from "#kit/fair-share.ts";
import { principalOf } from "#kit/rpc/principal.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import type { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { JobChanges } from "./jobs/changes.ts";
import type { Job } from "./jobs/job.ts";
import { eventMessages, jobMessage, kindOf, statusOf, waitMessage } from "./jobs/messages.ts";
import { readJobsPage } from "./jobs/pages.ts";
import { holdVerdict } from "./jobs/resolve.ts";
import { retryJob } from "./jobs/retry.ts";
import { type SubmitContext, submit } from "./jobs/submit.ts";
import { watchJob } from "./jobs/watch.ts";
import { pageSizes } from "./limits.ts";

/** What the routes need. */
export interface JobRoutesContext extends SubmitContext {
  changes: JobChanges;
  /** Shares the watches of this process. */
  watches: FairShare;
  /** Aborts when this process stops answering. */
  closing: AbortSignal;
  /** Holds of the service that are no jobs'; undefined: not theirs either. */
  resolveOtherHold(holdId: string, accountId: string): Promise<HoldVerdict | undefined>;
}

/** The RPCs of MediaService that are about jobs. */
export type JobMethods = Pick<
  ServiceImpl<typeof MediaService>,
  | "submitJob"
  | "getJob"
  | "listJobs"
  | "watchJob"
  | "resolveHold"
  | "listAccountJobs"
  | "inspectJob"
  | "retryJob"
>;

/** Makes the RPCs; their promises stand in the service's proto file. */
export function createJobRoutes(context: JobRoutesContext): JobMethods {
  const { store, clock, changes, closing, watches } = context;

  /** A job that the caller's key made. */
  const findOwn = async (
    jobId: string,
    call: HandlerContext,
    find = () => store.find(jobId),
  ): Promise<Job | undefined> => {
    const { keyId } = principalOf(call);
    const job = await find();
    return job && job.keyId === keyId && job.state !== "rejected" ? job : undefined;
  };

  return {
    async submitJob({ kind, body, idempotencyKey, admission, publicBaseUrl }, call) {
      const principal = principalOf(call);
      const asked = { kind: kindOf(kind) ?? broken("kind"), body, idempotencyKey };
      const submission = { ...asked, admission, publicBaseUrl };
      const { signal } = call;
      const { job, replayed } = await submit({ ...submission, principal, signal }, context);
      return { job: jobMessage(job), replayed };
    },
    async getJob({ jobId, kind }, call) {
      const job = await findOwn(jobId, call);
      const wanted = kindOf(kind);
      if (!job || (wanted && job.spec.kind !== wanted)) refuse(ErrorReason.JOB_NOT_FOUND);
      return { job: jobMessage(job) };
    },
    async listJobs({ pageSize, pageToken, status, kind }, call) {
      const page = await readJobsPage(store, {
        of: { keyId: principalOf(call).keyId },
        size: readPageSize(pageSize, pageSizes.key),
        token: pageToken,
        state: statusOf(status),
        kind: kindOf(kind),
      });
      // The caller's own cursor, passed on as it came.
      if (!page) refuse(ErrorReason.INVALID_VALUE, { param: "cursor" });
      return { jobs: page.jobs.map(jobMessage), nextPageToken: page.nextToken };
    },
    async *watchJob({ jobId }, call) {
      const signal = AbortSignal.any([call.signal, closing]);
      using _turn = await watches.take(principalOf(call).accountId, signal);
      const look = () => changes.look(jobId, clock.now(), () => store.find(jobId));
      const find = () => findOwn(jobId, call, look);
      let isOver = false;
      for await (const job of watchJob(jobId, { clock, changes, find, signal })) {
        yield job ? { job } : {};
        isOver = job?.completeTime !== undefined;
      }
      if (!isOver && closing.aborted) refuse(ErrorReason.SERVICE_UNAVAILABLE);
    },
    async resolveHold({ holdId, accountId }) {
      const other = await context.resolveOtherHold(holdId, accountId);
      if (other) return { verdict: other };
      const job = await store.find(holdId);
      const own = job?.accountId === accountId ? job : undefined;
      return { verdict: holdVerdict(own, clock.now()) };
    },
    async listAccountJobs({ accountId, pageSize, pageToken, status }) {
      if (accountId === "") broken("account_id");
      const page = await readJobsPage(store, {
        of: { accountId },
        size: readPageSize(pageSize, pageSizes.account),
        token: pageToken,
        state: statusOf(status),
        kind: undefined,
      });
      if (!page) broken("page_token");
      return { jobs: page.jobs.map(jobMessage), nextPageToken: page.nextToken };
    },
    async inspectJob({ jobId }) {
      const job = await store.find(jobId);
      if (!job || job.state === "rejected") refuse(ErrorReason.JOB_NOT_FOUND);
      const { accountId, keyId, attempts, wait } = job;
      return {
        job: jobMessage(job),
        accountId,
        keyId,
        holdId: jobId,
        attempts,
        events: eventMessages(job),
        ...(wait ? { wait: waitMessage(wait) } : {}),
      };
    },
    async retryJob({ jobId, operationId }) {
      return { job: jobMessage(await retryJob(jobId, operationId, context)) };
    },
  };
}

function readPageSize(asked: number, sizes: { default: number; most: number }): number {
  if (asked === 0) return sizes.default;
  return asked >= 1 && asked <= sizes.most ? asked : broken("page_size");
}

function broken(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
