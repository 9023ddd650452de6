// Answers the methods about jobs: submit, get, cancel, delete, list, watch, and those for billing and operators. Methods about
// files, speech and webhooks are in their rooms.

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { jsonBody } from "#common/words/typed-body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { principalOf, requestIdHeader } from "#kit/rpc/principal.ts";
import type { FairShare } from "#kit/share/fair-share.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import {
  JobBodySchema,
  type JobKind,
  type MediaService,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { deleteJob, type EraseContext } from "./jobs/delete.ts";
import { cancelJob, endHold, type FinishContext } from "./jobs/finish.ts";
import { isShown, type Job, upstreamOf } from "./jobs/job.ts";
import { holdVerdict } from "./jobs/job-holds.ts";
import { eventMessages, jobMessage, kindOf, statusOf, waitMessage } from "./jobs/messages.ts";
import { readJobsPage } from "./jobs/pages.ts";
import { retryJob, type SubmitContext, submit } from "./jobs/submit.ts";
import type { QueuePlaces } from "./jobs/waiting-jobs.ts";
import { type JobChanges, watchJob } from "./jobs/watch.ts";
import { pageSizes } from "./limits.ts";

/** The parts that the routes need. */
export interface JobRoutesContext extends SubmitContext, FinishContext, EraseContext {
  changes: JobChanges;
  places: QueuePlaces;
  /** Shares the watches of this process. */
  watches: FairShare;
  /** Aborts when this process stops answering. */
  closing: AbortSignal;
  /** Answers for holds of this service that belong to no job. Undefined: they belong to nothing else either. */
  resolveOtherHold(holdId: string, accountId: string): Promise<HoldVerdict | undefined>;
}

/** The RPCs of MediaService that are about jobs. */
export type JobMethods = Pick<
  ServiceImpl<typeof MediaService>,
  | "submitJob"
  | "getJob"
  | "cancelJob"
  | "deleteJob"
  | "listJobs"
  | "watchJob"
  | "resolveHold"
  | "listAccountJobs"
  | "inspectJob"
  | "retryJob"
>;

/** Makes the RPCs. The service's proto file states their promises. */
export function createJobRoutes(context: JobRoutesContext): JobMethods {
  const { store, clock, changes, places, closing, watches } = context;

  const placed = async (job: Job) => jobMessage(job, await places.of(job));

  return {
    async submitJob(
      { kind, body, idempotencyKey, admission, publicBaseUrl, form, job: typed },
      call,
    ) {
      const submission = {
        principal: principalOf(call),
        kind: kindOf(kind) ?? broken("kind"),
        body: jsonBody({ body, typed, desc: JobBodySchema, field: "job" }),
        ...{ idempotencyKey, admission, publicBaseUrl, form },
        requestId: call.requestHeader.get(requestIdHeader) ?? undefined,
        signal: call.signal,
      };
      const { job, ...how } = await submit(submission, context);
      return { job: jobMessage(job), ...how };
    },
    async getJob(asked, call) {
      return { job: await placed(await seenOf(asked, call, context)) };
    },
    async cancelJob({ jobId, kind }, call) {
      await seenOf({ jobId, kind }, call, context);
      return { job: jobMessage(await cancelJob(jobId, context)) };
    },
    async deleteJob({ jobId, kind }, call) {
      await seenOf({ jobId, kind }, call, context);
      await deleteJob(jobId, context);
      return {};
    },
    async listJobs({ pageSize, pageToken, status, kind, ...asked }, call) {
      const { accountId, keyId } = principalOf(call);
      const { after, before, model, allKeys, fromTime, untilTime } = asked;
      if ([pageToken, after, before].filter((one) => one !== "").length > 1) broken("page_token");
      const page = await readJobsPage(store, {
        of: allKeys ? { accountId } : { keyId },
        size: readPageSize(pageSize, pageSizes.key),
        token: pageToken,
        ...{ after, before, model },
        state: statusOf(status),
        kind: kindOf(kind),
        from: msOf(fromTime),
        until: msOf(untilTime),
      });
      // The caller's own cursor, passed on unchanged.
      if (!page) refuse(ErrorReason.INVALID_VALUE, { param: "cursor" });
      const { jobs, hasMore, nextToken } = page;
      return { jobs: await Promise.all(jobs.map(placed)), nextPageToken: nextToken, hasMore };
    },
    async *watchJob({ jobId, allKeys }, call) {
      const signal = AbortSignal.any([call.signal, closing]);
      using _turn = await watches.take(principalOf(call).accountId, signal);
      const find = (isFirst: boolean) =>
        findSeen({ allKeys }, call, () =>
          changes.look(jobId, { isFirst, steadyMs: clock.steady() }, store),
        );
      let isOver = false;
      for await (const job of watchJob(jobId, { clock, changes, places, find, signal })) {
        yield job ? { job } : {};
        isOver = job?.completeTime !== undefined;
      }
      if (!isOver && closing.aborted) refuse(ErrorReason.SERVICE_UNAVAILABLE);
    },
    ...operatorRoutes(context),
  };
}

/** A job that the caller's key made; with `allKeys` any key of its account. */
async function findSeen(
  { allKeys = false }: { allKeys?: boolean },
  call: HandlerContext,
  find: () => Promise<Job | undefined>,
): Promise<Job | undefined> {
  const { accountId, keyId } = principalOf(call);
  const job = await find();
  const isSeen = allKeys ? job?.accountId === accountId : job?.keyId === keyId;
  return job && isSeen && isShown(job) ? job : undefined;
}

/** The same job of the store, of one kind where that is given. Refuses with JOB_NOT_FOUND. */
async function seenOf(
  asked: { jobId: string; kind: JobKind; allKeys?: boolean },
  call: HandlerContext,
  { store }: JobRoutesContext,
): Promise<Job> {
  const job = await findSeen(asked, call, () => store.findWithoutText(asked.jobId));
  const wanted = kindOf(asked.kind);
  if (!job || (wanted && job.spec.kind !== wanted)) refuse(ErrorReason.JOB_NOT_FOUND);
  return job;
}

/** The RPCs for billing and the operator. */
function operatorRoutes(
  context: JobRoutesContext,
): Pick<JobMethods, "resolveHold" | "listAccountJobs" | "inspectJob" | "retryJob"> {
  const { store, clock } = context;
  return {
    async resolveHold({ holdId, accountId }) {
      const other = await context.resolveOtherHold(holdId, accountId);
      if (other) return { verdict: other };
      const job = await store.findWithoutText(holdId);
      const own = job?.accountId === accountId ? job : undefined;
      await endHold(own, context);
      return { verdict: holdVerdict(own, clock.now()) };
    },
    async listAccountJobs({ accountId, pageSize, pageToken, status, kind, fromTime, untilTime }) {
      const page = await readJobsPage(store, {
        of: accountId === "" ? "all" : { accountId },
        size: readPageSize(pageSize, pageSizes.account),
        token: pageToken,
        state: statusOf(status),
        kind: kindOf(kind),
        from: msOf(fromTime),
        until: msOf(untilTime),
      });
      if (!page) broken("page_token");
      return { jobs: page.jobs.map((job) => jobMessage(job)), nextPageToken: page.nextToken };
    },
    async inspectJob({ jobId }) {
      const job = await store.findWithoutText(jobId);
      if (!job || !isShown(job)) refuse(ErrorReason.JOB_NOT_FOUND);
      const { accountId, keyId, attempts, wait } = job;
      return {
        job: jobMessage(job),
        accountId,
        keyId,
        holdId: jobId,
        attempts,
        upstream: upstreamOf(job).name,
        events: eventMessages(job),
        ...(wait ? { wait: waitMessage(wait, job) } : {}),
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

function msOf(time: Timestamp | undefined): number | undefined {
  return time && timestampMs(time);
}

function broken(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
