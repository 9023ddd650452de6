// Shows the files that a job made.

import { useState } from "preact/hooks";
import type { Job } from "../types.ts";
import { FullSize } from "./full-size.tsx";
import { Origin } from "./origin.tsx";
import { factsOf, kindOf, outputsOf, pathOf, urlOf } from "./output-files.ts";

/** The files of a completed job, to see and hear. */
export function Outputs({
  job,
  prompt,
  onVary,
}: {
  job: Job;
  prompt?: string | undefined;
  /** The reader wants others like the image at this place. */
  onVary?: ((place: number) => void) | undefined;
}) {
  const [open, setOpen] = useState<number | null>(null);
  const vary =
    onVary &&
    ((place: number) => {
      setOpen(null);
      onVary(place);
    });
  return (
    <>
      <Files job={job} prompt={prompt} onOpen={setOpen} />
      {open !== null && (
        <FullSize {...{ job, prompt }} at={open} onVary={vary} onClose={() => setOpen(null)} />
      )}
    </>
  );
}

function Files({
  job,
  prompt,
  onOpen,
}: {
  job: Job;
  prompt: string | undefined;
  onOpen(place: number): void;
}) {
  const kind = kindOf(job);
  return (
    <ul class={`outputs ${kind}`}>
      {outputsOf(job).map((file, place) => {
        const url = urlOf(job, file);
        const name = `${kind === "image" ? "Image" : "File"} ${place + 1} of ${job.id}`;
        return (
          <li key={file.id}>
            {kind === "image" && (
              <button
                type="button"
                aria-label={`View: ${prompt || name}`}
                onClick={() => onOpen(place)}
              >
                <img
                  src={url}
                  alt={prompt || name}
                  {...(file.width && { width: file.width, height: file.height })}
                />
              </button>
            )}
            {kind === "video" && (
              // biome-ignore lint/a11y/useMediaCaption: generated videos have no captions.
              <video src={url} controls preload="metadata" aria-label={prompt || name} />
            )}
            {kind === "music" && (
              // biome-ignore lint/a11y/useMediaCaption: generated music has no captions.
              <audio src={url} controls preload="metadata" aria-label={prompt || name} />
            )}
            <p class="row spread fine">
              <span class="num">{factsOf(file)}</span>
              <a href={`${url}?download=1`} download aria-label={`Download ${name}`}>
                Download
              </a>
            </p>
            {kind !== "music" && <Origin path={`${pathOf(job)}/files/${file.id}`} />}
          </li>
        );
      })}
    </ul>
  );
}
