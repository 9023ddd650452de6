// The jobs of earlier visits, below a playground of jobs.

import { useEffect, useState } from "preact/hooks";
import { useApi } from "../../hooks.ts";
import type { List, ModelKind } from "../../types.ts";
import { FullSize } from "../full-size.tsx";
import { isOwn, type ListedJob } from "../listed-job.ts";
import { kindOf, outputsOf, urlOf } from "../output-files.ts";
import { loadForms, type Made, settingsOf } from "./made-jobs.ts";

/** Jobs of a gallery. The screen of jobs has the older ones. */
const mostEarlier = 12;

/** The newest jobs of a kind that this page did not send, with their forms where the browser keeps those. */
export function useEarlier(
  kind: ModelKind,
  sent: readonly Made[],
): { earlier: Made[]; isLoading: boolean } {
  const loaded = useApi<List<ListedJob>>(
    `/jobs?kind=${kind}&status=completed&limit=${mostEarlier}`,
  );
  useEffect(() => void loadForms(), []);
  const jobs = loaded.data?.data.filter(isOwn) ?? [];
  const earlier = jobs
    .filter(({ id }) => !sent.some(({ job }) => job.id === id))
    .map((job) => ({ job, settings: settingsOf(job.id) ?? {} }));
  return { earlier, isLoading: !loaded.data && !loaded.error };
}

/** The files of earlier jobs, small. */
export function Earlier({
  earlier,
  onVary,
}: {
  earlier: readonly Made[];
  onVary?: ((made: Made, place: number) => void) | undefined;
}) {
  const [open, setOpen] = useState<{ made: Made; place: number } | null>(null);
  if (earlier.length === 0) return null;
  return (
    <section aria-label="Made earlier">
      <div class="section-head">
        <h2>Made earlier</h2>
        <a href="/console/jobs">All jobs</a>
      </div>
      <ul class={`gallery ${earlier[0] ? kindOf(earlier[0].job) : ""}`}>
        {earlier.flatMap((made) =>
          outputsOf(made.job).map((file, place) => (
            <li key={file.id}>
              <Small made={made} place={place} onOpen={() => setOpen({ made, place })} />
            </li>
          )),
        )}
      </ul>
      {open && (
        <FullSize
          job={open.made.job}
          prompt={open.made.settings.prompt}
          at={open.place}
          onVary={
            onVary &&
            ((place) => {
              setOpen(null);
              onVary(open.made, place);
            })
          }
          onClose={() => setOpen(null)}
        />
      )}
    </section>
  );
}

function Small({
  made: { job, settings },
  place,
  onOpen,
}: {
  made: Made;
  place: number;
  onOpen(): void;
}) {
  const file = outputsOf(job)[place];
  if (!file) return null;
  const url = urlOf(job, file);
  const name = settings.prompt || settings.title || `File ${place + 1} of ${job.id}`;
  const address = `/console/jobs?id=${job.id}`;
  if (kindOf(job) === "image") {
    return (
      <button type="button" aria-label={`View: ${name}`} title={name} onClick={onOpen}>
        <img src={url} alt="" loading="lazy" />
      </button>
    );
  }
  return (
    <>
      {kindOf(job) === "video" ? (
        // biome-ignore lint/a11y/useMediaCaption: generated videos have no captions.
        <video src={url} controls preload="metadata" aria-label={name} />
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: generated music has no captions.
        <audio src={url} controls preload="none" aria-label={name} />
      )}
      <a class="fine name" href={address} title={name}>
        {name}
      </a>
    </>
  );
}
