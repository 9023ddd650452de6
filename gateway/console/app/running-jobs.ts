// Keeps running jobs up to date on screens, by their events.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, open } from "./api.ts";
import type { Loaded } from "./hooks.ts";
import { isOwn, type ListedJob } from "./screens/listed-job.ts";
import { eventsOf } from "./sse.ts";
import type { Job, List } from "./types.ts";

/** The most jobs watched at once. Browsers open few connections to one host, and one must stay free. */
const maxWatched = 3;
/** Ms after which a job is watched again when a watch broke off. */
const againMs = 3_000;

/** The jobs that have not ended, and the set of those that are watched. */
interface Running {
  jobs: ListedJob[];
  areAllWatched: boolean;
}

/**
 * The jobs of some lists that have not ended. Some of them are watched by their events, the reader's own first, and their lists show
 * each change. A job that has ended, or that the reader may not watch, makes room for the next.
 */
export function useRunningJobs(
  ...lists: readonly Pick<Loaded<List<ListedJob>>, "data" | "set">[]
): Running {
  const [refused, setRefused] = useState<ReadonlySet<string>>(new Set());
  const all = lists.flatMap(({ data }) => data?.data ?? []).filter((job) => !job.terminal);
  // A job that began between two lists' answers is in both.
  const jobs = [...new Map(all.map((job) => [job.id, job])).values()];
  const open = jobs.filter((job) => !refused.has(job.id));
  const watched = [...open.filter(isOwn), ...open.filter((job) => !isOwn(job))]
    .slice(0, maxWatched)
    .map((job) => job.id);
  const watches = useRef(new Map<string, AbortController>()).current;
  // The ids are one text, so that no watch begins or stops when a job changes.
  useEffect(() => {
    for (const [id, watch] of watches) {
      if (watched.includes(id)) continue;
      watch.abort();
      watches.delete(id);
    }
    for (const id of watched.filter((one) => !watches.has(one))) {
      const watch = new AbortController();
      watches.set(id, watch);
      watchJob(id, replace, watch.signal).catch(() =>
        setRefused((before) => new Set([...before, id])),
      );
    }
  }, [watched.join()]);
  useEffect(
    () => () => {
      for (const watch of watches.values()) watch.abort();
      watches.clear();
    },
    [],
  );
  const replace = (job: Job) => {
    for (const { set } of lists) {
      set((list) => ({
        ...list,
        data: list.data.map((one) => (one.id === job.id ? { ...one, ...job } : one)),
      }));
    }
  };
  return { jobs, areAllWatched: watched.length === jobs.length };
}

/**
 * Reports each state of a job until it has ended, and reconnects after breaks. Rejects with a refusal that a repeat does not change:
 * the job is gone, or the reader may not see it.
 */
export async function watchJob(
  id: string,
  onJob: (job: Job) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await open(`/jobs/${encodeURIComponent(id)}/events`, { signal });
      for await (const event of eventsOf(response)) {
        const job = JSON.parse(event.data) as Partial<Job>;
        // An event about the stream's own end has an error and no job.
        if (signal.aborted || job.id !== id) continue;
        onJob(job as Job);
        if (job.terminal) return;
      }
    } catch (error) {
      if (isFinal(error) && !signal.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** A lasting refusal. Those of a busy service pass. */
function isFinal(error: unknown): boolean {
  const { status } = error instanceof ApiError ? error : { status: 0 };
  return status >= 400 && status < 500 && status !== 429;
}
