// The state of the jobs that this page sent, with their forms.

import { signal } from "@preact/signals";
import { call } from "../../api.ts";
import { forgetKept, keep, keptOf } from "../../browser-store.ts";
import { useRunningJobs } from "../../running-jobs.ts";
import { session } from "../../session.ts";
import type { Job, List, ModelKind } from "../../types.ts";
import type { Settings } from "./settings.ts";

/** A job that this page sent, with its form. */
export interface Made {
  job: Job;
  settings: Settings;
}

/** Newest first. They stay until the page is left or reloaded. The screen of jobs also has the jobs themselves. */
export const made = signal<readonly Made[]>([]);

/** Forms of jobs in the browser's store, by the ids of the jobs. */
const keptForms = signal<ReadonlyMap<string, Settings>>(new Map());

// Another key may sign in to this page.
session.subscribe((value) => {
  if (value) return;
  made.value = [];
  keptForms.value = new Map();
});

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
  void keep("job", job.id, settings);
}

export function update(job: Job): void {
  made.value = made.value.map((one) =>
    one.job.id === job.id ? { ...one, job: { ...one.job, ...job } } : one,
  );
}

export function forget(id: string): void {
  made.value = made.value.filter(({ job }) => job.id !== id);
  void forgetKept("job", id);
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

export async function loadForms(): Promise<void> {
  const kept = await keptOf<Settings>("job");
  keptForms.value = new Map(kept.map(({ id, value }) => [id, value]));
}

/** The settings of a job that this page sent, or another page of this browser. */
export function settingsOf(jobId: string): Settings | undefined {
  const sent = made.value.find(({ job }) => job.id === jobId)?.settings;
  return sent ?? keptForms.value.get(jobId);
}
