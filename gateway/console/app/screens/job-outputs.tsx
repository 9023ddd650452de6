import { v1 } from "../api.ts";
import { bytes } from "../format.ts";
import type { Job, OutputFile } from "../types.ts";
import { Origin } from "./origin.tsx";

/** The name of each kind of job in paths, and the field of its outputs. */
const families = {
  "image.job": { path: "images", outputs: "images", kind: "image" },
  "video.job": { path: "videos", outputs: "videos", kind: "video" },
  "music.job": { path: "music", outputs: "clips", kind: "music" },
} as const;

export const kindOf = (job: Job) => families[job.object].kind;
export const outputsOf = (job: Job): OutputFile[] => job[families[job.object].outputs] ?? [];
export const pathOf = (job: Job) => `/${families[job.object].path}/generations/${job.id}`;

/** On this page's own origin, even where the service has another name elsewhere, because the page may load nothing else. */
export const urlOf = (job: Job, file: OutputFile) => `${v1}${pathOf(job)}/files/${file.id}`;

/** The files of a completed job, to see and hear. */
export function Outputs({ job, prompt }: { job: Job; prompt?: string | undefined }) {
  const kind = kindOf(job);
  return (
    <ul class={`outputs ${kind}`}>
      {outputsOf(job).map((file, place) => {
        const url = urlOf(job, file);
        const name = `${kind === "image" ? "Image" : "File"} ${place + 1} of ${job.id}`;
        return (
          <li key={file.id}>
            {kind === "image" && (
              <a href={url} target="_blank" rel="noopener">
                <img
                  src={url}
                  alt={prompt || name}
                  {...(file.width && { width: file.width, height: file.height })}
                />
              </a>
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

function factsOf(file: OutputFile): string {
  const facts = [
    file.width && `${file.width} × ${file.height}`,
    file.durationSeconds && `${Math.round(file.durationSeconds * 10) / 10} s`,
    bytes(file.sizeBytes),
  ];
  return facts.filter(Boolean).join(" · ");
}
