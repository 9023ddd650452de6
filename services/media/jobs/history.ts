import type { Refusal } from "../generate/port.ts";
import { maxEvents } from "../limits.ts";
import type { Job, JobEvent } from "./job.ts";

/** The job with a step more in its history. */
export function noted(job: Job, at: number, detail = "", name: string = job.state): Job {
  return { ...job, events: [...job.events, { at, name, detail }].slice(-maxEvents) };
}

/** For operators. */
export const refusalWords: Readonly<Record<Refusal, string>> = {
  too_many_requests: "the upstream answered 429",
  unavailable: "the upstream was not available (5xx)",
  unreachable: "the upstream could not be reached",
};

/** A day of tries would push all else out of a job's history: the newest stands for them. */
export function withoutLastTry(events: readonly JobEvent[]): readonly JobEvent[] {
  const before = events.at(-1)?.name === "running" ? events.slice(0, -1) : events;
  return before.at(-1)?.name === "waiting" ? before.slice(0, -1) : before;
}
