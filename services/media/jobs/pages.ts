import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { maxPageBytes } from "../limits.ts";
import type { Job, JobState, MediaKind, ShownState } from "./job.ts";
import { statesShownAs } from "./job.ts";
import type { JobPlace, JobStore, JobsQuery } from "./store.ts";

/** A page that is asked for. At most one of `token`, `after` and `before` is given. */
export interface PageQuery {
  of: JobsQuery["of"];
  /** Already within its bounds. */
  size: number;
  /** From the page before; empty: none. */
  token: string;
  /** A job's id: the page begins behind it, with the next older one. Empty: none. */
  after?: string;
  /** A job's id: the page ends before it, with the next newer one. Empty: none. */
  before?: string;
  state: ShownState | undefined;
  kind: MediaKind | undefined;
  /** Public id; empty: all. */
  model?: string;
}

/** A page of jobs, newest first. */
interface JobsPage {
  jobs: Job[];
  /** More follow in the direction that was asked for. */
  hasMore: boolean;
  /** For the page behind; empty where nothing is behind, or this one was asked for by what comes after it. */
  nextToken: string;
}

/** Reads a page; undefined where its token is none of ours. Refuses with INVALID_VALUE a job that its reader may not list. */
export async function readJobsPage(
  store: Pick<JobStore, "list" | "findWithoutText">,
  query: PageQuery,
): Promise<JobsPage | undefined> {
  const fromToken = query.token === "" ? undefined : parseToken(query.token);
  if (query.token !== "" && !fromToken) return undefined;
  const { of, kind, size, model = "" } = query;
  const states = query.state ? statesShownAs(query.state) : allShown();
  const after = fromToken ?? (await placeOf(store, query, "after"));
  const before = await placeOf(store, query, "before");
  const which = { of, states, kind, model: model === "" ? undefined : model, after, before };
  const found = await store.list({ ...which, limit: size + 1 });
  const jobs = before
    ? fitting(found.slice(-size).reverse()).reverse()
    : fitting(found.slice(0, size));
  const last = jobs.at(-1);
  const hasMore = found.length > jobs.length;
  return { jobs, hasMore, nextToken: hasMore && last && !before ? tokenOf(last) : "" };
}

/** The first of them that are no more than a page's bytes; one at least. */
function fitting(jobs: readonly Job[]): Job[] {
  let left = maxPageBytes;
  const end = jobs.findIndex(({ spec: { metadata = [] } }, index) => {
    left -= Buffer.byteLength(JSON.stringify(metadata));
    return left < 0 && index > 0;
  });
  return jobs.slice(0, end === -1 ? jobs.length : end);
}

/** Also of a job that was deleted a moment ago, so that a reader that deletes what it reads can go on. */
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

/** The last job's place in the order: it stays right though the job is gone meanwhile. */
function tokenOf({ createdAt, jobId }: Job): string {
  return Buffer.from(`${createdAt} ${jobId}`).toString("base64url");
}

function parseToken(token: string): { createdAt: number; jobId: string } | undefined {
  const text = Buffer.from(token, "base64url").toString();
  const [, createdAt, jobId] = /^(\d{1,15}) (job_[a-z0-9]{1,60})$/.exec(text) ?? [];
  return createdAt && jobId ? { createdAt: Number(createdAt), jobId } : undefined;
}
