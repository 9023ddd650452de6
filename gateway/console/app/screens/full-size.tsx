// Shows the images of a job in full size.

import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../kit/dialog.tsx";
import type { Job } from "../types.ts";
import { factsOf, outputsOf, urlOf } from "./output-files.ts";

/** An image of a job in front of the page. The arrow keys show the job's others. */
export function FullSize({
  job,
  prompt,
  at,
  onVary,
  onClose,
}: {
  job: Job;
  prompt?: string | undefined;
  /** The place of the image that is shown first, from 0. */
  at: number;
  /** The reader wants others like this image. */
  onVary?: ((place: number) => void) | undefined;
  onClose(): void;
}) {
  const files = outputsOf(job);
  const [place, setPlace] = useState(at);
  const step = (by: number) =>
    setPlace((before) => (before + by + files.length) % Math.max(1, files.length));
  useEffect(() => {
    const press = ({ key }: KeyboardEvent) => {
      if (key === "ArrowLeft") step(-1);
      if (key === "ArrowRight") step(1);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  const file = files[place];
  if (!file) return null;
  const url = urlOf(job, file);
  const name = `Image ${place + 1} of ${files.length}`;
  return (
    <Dialog title={name} full onClose={onClose}>
      <div class="stack">
        <img src={url} alt={prompt || name} />
        {prompt && <p class="prompt muted">{prompt}</p>}
        <div class="dialog-actions">
          <span class="num fine muted facts-left">{factsOf(file)}</span>
          {files.length > 1 && (
            <>
              <button type="button" onClick={() => step(-1)}>
                Previous
              </button>
              <button type="button" onClick={() => step(1)}>
                Next
              </button>
            </>
          )}
          <a class="button" href={`${url}?download=1`} download>
            Download
          </a>
          {onVary && (
            <button type="button" onClick={() => onVary(place)}>
              Vary
            </button>
          )}
          <button type="button" class="primary" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}
