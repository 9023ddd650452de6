// Reads pages of jobs for callers and operators: filters, cursors, sizes.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { maxPageBytes } from "../limits.ts";
import type { Job, JobState, MediaKind, ShownState } from "./job.ts";
import { statesShownAs } from "./job.ts";
import type { JobPlace, JobStore, JobsQuery } from "./store.ts";

/** A request for a page. At most one of `token`, `after` and `before` is given. */
export interface PageQuery {
  of: JobsQuery["of"];
  /** Within its bounds already. */
  size: number;
  /** From the page before. Empty: none. */
  token: string;
  /** A job's id. The page begins behind it, with the next older one. Empty: none. */
  after?: string;
  /** A job's id. The page ends before it, with the next newer one. Empty: none. */
  before?: string;
  state: ShownState | undefined;
  kind: MediaKind | undefined;
  /** Public id. Empty: all. */
  model?: string;
  /** As in {@link JobsQuery}. */
  from?: number | undefined;
  until?: number | undefined;
}

/** A page of jobs, newest first. */
interface JobsPage {
  jobs: Job[];
  /** Do further jobs follow in the requested direction? */
  hasMore: boolean;
  /** For the page behind. Empty where there is none, or where this page was requested by `before`. */
  nextToken: string;
}

/** Reads a page. Undefined where its token is invalid. A job that its reader may not list is refused with INVALID_VALUE. */
export async function readJobsPage(
  store: Pick<JobStore, "list" | "findWithoutText">,
  query: PageQuery,
): Promise<JobsPage | undefined> {
  const fromToken = query.token === "" ? undefined : parseToken(query.token);
  if (query.token !== "" && !fromToken) return undefined;
  const { of, kind, size, model = "", from, until } = query;
  const states = query.state ? statesShownAs(query.state) : allShown();
  const after = fromToken ?? (await placeOf(store, query, "after"));
  const before = await placeOf(store, query, "before");
  const which = { of, states, kind, model: model === "" ? undefined : model, from, until };
  const found = await store.list({ ...which, after, before, limit: size + 1 });
  const jobs = before
    ? fitting(found.slice(-size).reverse()).reverse()
    : fitting(found.slice(0, size));
  const last = jobs.at(-1);
  const hasMore = found.length > jobs.length;
  return { jobs, hasMore, nextToken: hasMore && last && !before ? tokenOf(last) : "" };
}

/** The first of the jobs that fit into a page's bytes. At least one. */
function fitting(jobs: readonly Job[]): Job[] {
  let left = maxPageBytes;
  const end = jobs.findIndex(({ spec: { metadata = [] } }, index) => {
    left -= Buffer.byteLength(JSON.stringify(metadata));
    return left < 0 && index > 0;
  });
  return jobs.slice(0, end === -1 ? jobs.length : end);
}

/** Works for a job that was deleted a moment ago, too, so that a reader that deletes each job can go on. */
async function placeOf(
  store: Pick<JobStore, "findWithoutText">,
  query: PageQuery,
  param: "after" | "before",
): Promise<JobPlace | undefined> {
  const { of, [param]: jobId = "" } = query;
  if (jobId === "") return undefined;
  const job = await store.findWithoutText(jobId);
  const isListed =
    job &&
    (of === "all" || ("keyId" in of ? job.keyId === of.keyId : job.accountId === of.accountId));
  if (!isListed || job.state === "rejected") {
    return refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' must be the id of a job in this list, such as its first_id or last_id.`,
    });
  }
  return job;
}

function allShown(): JobState[] {
  return (["queued", "running", "completed", "failed"] as const).flatMap(statesShownAs);
}

/** The last job's place in the order. It stays valid even where the job is gone meanwhile. */
function tokenOf({ createdAt, jobId }: Job): string {
  return Buffer.from(`${createdAt} ${jobId}`).toString("base64url");
}

function parseToken(token: string): { createdAt: number; jobId: string } | undefined {
  const text = Buffer.from(token, "base64url").toString();
  const [, createdAt, jobId] = /^(\d{1,15}) (job_[a-z0-9]{1,60})$/.exec(text) ?? [];
  return createdAt && jobId ? { createdAt: Number(createdAt), jobId } : undefined;
}
