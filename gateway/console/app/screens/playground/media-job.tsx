// Shows one job that this page sent.

import { useEffect, useRef } from "preact/hooks";
import { call } from "../../api.ts";
import { useAction } from "../../hooks.ts";
import { ErrorText, Failure } from "../../kit/states.tsx";
import { toast } from "../../kit/toast.tsx";
import { Credits, ShortId, Status } from "../../kit/values.tsx";
import { may } from "../../session.ts";
import type { Job } from "../../types.ts";
import { uploadImage } from "../files-calls.ts";
import { Outputs } from "../job-outputs.tsx";
import { statusOf } from "../listed-job.ts";
import { kindOf, outputsOf, pathOf, urlOf } from "../output-files.ts";
import { type Made, update } from "./made-jobs.ts";

/** One job that this page sent: its progress, its outputs and its cost. */
export function MediaJob({
  made: { job, settings },
  onReference,
  onVary,
}: {
  made: Made;
  /** The reader wants others like the file at this place. */
  onVary?: ((made: Made, place: number) => void) | undefined;
  /** The reader chose this file as a reference of the next job. */
  onReference?: ((fileId: string) => void) | undefined;
}) {
  const prompt = settings.prompt || settings.title;
  const cancel = useAction(async () =>
    update(await call<Job>(`${pathOf(job)}/cancel`, { method: "POST" })),
  );
  const keep = useAction(async () => {
    onReference?.(await fileOf(job, 0));
    toast("It is among your files, and a reference of this form.");
  });
  return (
    <article class="card stack" aria-busy={!job.terminal}>
      <header class="row spread">
        <span class="row">
          <Status of="job" value={statusOf(job)} />
          <a href={`/console/jobs?id=${job.id}`}>
            <ShortId id={job.id} />
          </a>
        </span>
        <span class="muted">
          <Charge job={job} />
        </span>
      </header>
      {prompt && <p class="prompt">{prompt}</p>}
      {!job.terminal && (
        <div class="row progress">
          <progress max={100} value={job.progress ?? 0} aria-label={`Progress of ${job.id}`} />
          <span class="num muted">{job.progress ?? 0} %</span>
          <button type="button" class="small" disabled={cancel.isBusy} onClick={() => cancel.run()}>
            Cancel
          </button>
        </div>
      )}
      {job.status === "completed" && (
        <Outputs
          job={job}
          prompt={prompt}
          onVary={onVary && ((place) => onVary({ job, settings }, place))}
        />
      )}
      {job.error && statusOf(job) === "failed" && <Failure of={job.error} />}
      {job.status === "completed" && kindOf(job) === "image" && onReference && may("files") && (
        <div>
          <button type="button" class="small" disabled={keep.isBusy} onClick={() => keep.run()}>
            Use as reference
          </button>
        </div>
      )}
      <ErrorText error={cancel.error ?? keep.error} />
    </article>
  );
}

/** Stores an output among the files of the account. Gives the file's id. */
export async function fileOf(job: Job, place: number): Promise<string> {
  const output = outputsOf(job)[place];
  if (!output) throw new Error(`the job has no output ${place}`);
  const bytes = await (await fetch(urlOf(job, output))).blob();
  return (await uploadImage(bytes, `${job.id}.${bytes.type.split("/")[1] ?? "png"}`)).id;
}

function Charge({ job }: { job: Job }) {
  if (job.terminal && job.creditsCharged !== undefined) {
    return (
      <>
        charged <Credits value={job.creditsCharged} /> credits
      </>
    );
  }
  return (
    <>
      holds <Credits value={job.creditsReserved} /> credits
    </>
  );
}

/** Calls back once for each job that ends while the page shows it. */
export function useEnds(jobs: readonly Made[], onEnd: () => void): void {
  const ended = jobs.filter(({ job }) => job.terminal).length;
  const before = useRef(ended);
  useEffect(() => {
    if (ended > before.current) onEnd();
    before.current = ended;
  }, [ended]);
}
