// Erases media's data of an account that is being closed: jobs, files, speech and webhooks, a batch for each call.

import type { ServiceImpl } from "@connectrpc/connect";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import type { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { openStates } from "./jobs/census.ts";
import { deleteJob, type EraseContext } from "./jobs/delete.ts";
import { cancelJob, type FinishContext } from "./jobs/finish.ts";
import type { JobState } from "./jobs/job.ts";
import { eraseBatch } from "./limits.ts";

/** The parts that erasing an account needs. */
export interface EraseAccountContext extends FinishContext, EraseContext {
  /** Erases some of the account's uploads. True: none was left. */
  eraseFiles(accountId: string): Promise<boolean>;
  /** Erases some of the speech of these keys. True: none was left. */
  eraseSpeeches(keyIds: readonly string[]): Promise<boolean>;
  /** Erases some of the account's webhooks. True: none was left. */
  eraseWebhooks(accountId: string): Promise<boolean>;
}

/** The RPC that erases the data of a closing account. Each call erases a batch of each kind, so that no call lasts long. */
export function createEraseAccountRoute(
  context: EraseAccountContext,
): Pick<ServiceImpl<typeof MediaService>, "eraseAccount"> {
  return {
    async eraseAccount({ accountId, keyIds }) {
      if (!accountOrKeyIdPattern.test(accountId)) broken("account_id");
      if (keyIds.length > maxKeysPerAccount) broken("key_ids");
      const parts = await Promise.all([
        eraseJobs(accountId, context),
        context.eraseFiles(accountId),
        context.eraseSpeeches(keyIds),
        context.eraseWebhooks(accountId),
      ]);
      return { isOver: parts.every((isOver) => isOver) };
    },
  };
}

/** Cancels waiting jobs and deletes ended ones. A running job ends and is charged. True: no job of the account was left. */
async function eraseJobs(accountId: string, context: EraseAccountContext): Promise<boolean> {
  const { store } = context;
  const list = (states: readonly JobState[]) =>
    store.list({
      ...{ of: { accountId }, states, limit: eraseBatch },
      ...{ kind: undefined, after: undefined },
    });
  for (const { jobId } of await list(["queued"])) await calmly(cancelJob(jobId, context));
  const ended = await list(["completed", "failed"]);
  for (const { jobId } of ended) await calmly(deleteJob(jobId, context));
  return ended.length === 0 && (await list(openStates)).length === 0;
}

/** A job that has gone on meanwhile is found in its next state by the next call. */
async function calmly(change: Promise<unknown>): Promise<void> {
  await change.catch((error) => {
    const { JOB_NOT_FOUND, JOB_NOT_CANCELLABLE, JOB_NOT_DELETABLE } = ErrorReason;
    const isPassed = [JOB_NOT_FOUND, JOB_NOT_CANCELLABLE, JOB_NOT_DELETABLE].some((reason) =>
      isRefusal(error, reason),
    );
    if (!isPassed) throw error;
  });
}

function broken(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
