// Shows one job in full, on the screen of jobs.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorText, Failure, Notice, Waiting } from "../kit/states.tsx";
import { Credits, Fact, Id, Status, When } from "../kit/values.tsx";
import { watchJob } from "../running-jobs.ts";
import { jobStatuses } from "../statuses.ts";
import type { Job } from "../types.ts";
import { Outputs } from "./job-outputs.tsx";
import { isOwn, type ListedJob, statusOf } from "./listed-job.ts";
import { kindOf } from "./output-files.ts";
import { loadForms, settingsOf } from "./playground/made-jobs.ts";
import { linkTo, type Settings } from "./playground/settings.ts";

/** The fields of a job's document about its request. The list lacks them. */
type Told = ListedJob & {
  mode?: string;
  n?: number;
  size?: string;
  durationSeconds?: number;
  resolution?: string;
  aspectRatio?: string;
  seed?: number;
  startedAt?: string | null;
  expiresAt?: string;
  retryOf?: string;
};

/** One job, from the list or, where it is not there, by its id. */
export function JobDetail({
  id,
  known,
  isListed,
  onClose,
}: {
  id: string;
  known: ListedJob | undefined;
  /** The list has come, so a job that it lacks is asked for. */
  isListed: boolean;
  onClose(): void;
}) {
  const looked = useJob(known || !isListed ? null : id);
  const job = (known ?? looked.job) as Told | undefined;
  useEffect(() => void loadForms(), []);
  useEffect(() => {
    document.getElementById("job")?.scrollIntoView({ block: "nearest" });
  }, [id]);
  return (
    <section class="card stack detail" id="job" aria-label="The job">
      <div class="row spread">
        <h2 class="row">
          <Id>{id}</Id>
          {job && <Status of="job" value={statusOf(job)} isToldBeside />}
        </h2>
        <button type="button" class="small" onClick={onClose}>
          Close
        </button>
      </div>
      {job && <p class="muted">{jobStatuses[statusOf(job)]}</p>}
      {!job && (looked.error ? <ErrorText error={looked.error} /> : <Waiting />)}
      {job && (
        <div class="beside">
          <Facts job={job} />
          {isOwn(job) && job.status === "completed" && (
            <Outputs job={job} prompt={settingsOf(id)?.prompt} />
          )}
        </div>
      )}
      {job && !isOwn(job) && (
        <Notice>Its files are for the key that made it; another key sees what is here.</Notice>
      )}
      {job?.error && statusOf(job) === "failed" && <Failure of={job.error} />}
      {job && isOwn(job) && (
        <div>
          <a class="button small" href={again(job)}>
            {settingsOf(id) ? "Try again" : "Again with these settings"}
          </a>
        </div>
      )}
    </section>
  );
}

/** A job of any kind by its id alone. Its events update it until it has ended. Null: no request. */
function useJob(id: string | null): { job?: Job; error?: unknown } {
  const [state, setState] = useState<{ job?: Job; error?: unknown }>({});
  useEffect(() => {
    if (id === null) return;
    const abort = new AbortController();
    setState({});
    watchJob(id, (job) => setState({ job }), abort.signal).catch((error) =>
      setState((before) => ({ ...before, error })),
    );
    return () => abort.abort();
  }, [id]);
  return state;
}

/**
 * The address of the playground with this job's settings. The API does not give prompts back. The prompt is there only if this browser
 * sent the job.
 */
function again(job: Told): string {
  const known: Settings = settingsOf(job.id) ?? {
    ...(job.n && { n: String(job.n) }),
    ...(job.size && { size: job.size }),
    ...(job.durationSeconds && { seconds: String(job.durationSeconds) }),
    ...(job.resolution && { resolution: job.resolution }),
    ...(job.aspectRatio && { aspectRatio: job.aspectRatio, shape: "ratio" }),
    ...(job.seed !== undefined && { seed: String(job.seed) }),
    ...(job.mode && kindOf(job) === "music" && { mode: job.mode }),
  };
  return linkTo(kindOf(job), job.model ?? "", known);
}

function Facts({ job }: { job: Told }) {
  const facts: [name: string, value: ComponentChildren][] = [
    ["Model", job.model],
    [
      "Made as",
      [
        job.mode,
        job.n && `${job.n} ${job.n === 1 ? "image" : "images"}`,
        job.size,
        job.durationSeconds && `${job.durationSeconds} s`,
        job.resolution,
        job.aspectRatio,
      ]
        .filter(Boolean)
        .join(" · "),
    ],
    ["Sent", <When key="sent" at={job.createdAt} style="second" />],
    ["Began", job.startedAt && <When at={job.startedAt} style="second" />],
    ["Ended", job.completedAt && <When at={job.completedAt} style="second" />],
    ["Kept until", job.expiresAt && <When at={job.expiresAt} style="day" />],
    ["Repeats", job.retryOf && <a href={`/console/jobs?id=${job.retryOf}`}>{job.retryOf}</a>],
    [
      job.terminal ? "Charged" : "Held",
      <>
        <Credits value={job.terminal ? (job.creditsCharged ?? 0) : job.creditsReserved} /> credits
      </>,
    ],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        !value ? null : (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ),
      )}
    </dl>
  );
}
