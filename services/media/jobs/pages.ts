import type { Job, JobState, MediaKind, ShownState } from "./job.ts";
import { statesShownAs } from "./job.ts";
import type { JobStore, JobsQuery } from "./store.ts";

/** A page that is asked for. */
export interface PageQuery {
  of: JobsQuery["of"];
  /** Already within its bounds. */
  size: number;
  /** From the page before; empty: the first. */
  token: string;
  state: ShownState | undefined;
  kind: MediaKind | undefined;
}

/** A page of jobs, newest first; the token is empty on the last. */
export interface JobsPage {
  jobs: Job[];
  nextToken: string;
}

/** Reads a page; undefined where its token is none of ours. */
export async function readJobsPage(
  store: Pick<JobStore, "list">,
  query: PageQuery,
): Promise<JobsPage | undefined> {
  const after = query.token === "" ? undefined : parseToken(query.token);
  if (query.token !== "" && !after) return undefined;
  const { of, kind, size } = query;
  const states = query.state ? statesShownAs(query.state) : allShown();
  const found = await store.list({ of, states, kind, after, limit: size + 1 });
  const jobs = found.slice(0, size);
  const last = jobs.at(-1);
  return { jobs, nextToken: found.length > size && last ? tokenOf(last) : "" };
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
