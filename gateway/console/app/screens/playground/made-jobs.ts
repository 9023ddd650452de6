import { signal } from "@preact/signals";
import { call } from "../../api.ts";
import { useRunningJobs } from "../../running-jobs.ts";
import type { Job, List, ModelKind } from "../../types.ts";
import type { Settings } from "./settings.ts";

/** A job that this page sent, with its form. */
export interface Made {
  job: Job;
  settings: Settings;
}

/** Newest first. They stay until the page is left or reloaded. The screen of jobs also has the jobs themselves. */
export const made = signal<readonly Made[]>([]);

export async function submit(
  path: string,
  body: Record<string, unknown>,
  settings: Settings,
  idempotencyKey: string,
): Promise<void> {
  const headers = { "idempotency-key": idempotencyKey };
  const job = await call<Job>(path, { method: "POST", body, headers });
  if (made.value.some((one) => one.job.id === job.id)) return;
  made.value = [{ job, settings }, ...made.value];
}

export function update(job: Job): void {
  made.value = made.value.map((one) =>
    one.job.id === job.id ? { ...one, job: { ...one.job, ...job } } : one,
  );
}

export function forget(id: string): void {
  made.value = made.value.filter(({ job }) => job.id !== id);
}

/** The jobs of a kind that this page sent, live. */
export function useMade(kind: ModelKind): readonly Made[] {
  const own = made.value.filter(({ job }) => job.object === `${kind}.job`);
  useRunningJobs({ data: { data: own.map(({ job }) => job) }, set });
  return own;
}

function set(change: (list: List<Job>) => List<Job>): void {
  for (const job of change({ data: made.value.map((one) => one.job) }).data) update(job);
}

/** The settings of a job that this page sent. */
export function settingsOf(jobId: string): Settings | undefined {
  return made.value.find(({ job }) => job.id === jobId)?.settings;
}
