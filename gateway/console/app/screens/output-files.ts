// Says where the files of a job are, and what is known of each.

import { v1 } from "../api.ts";
import { bytes } from "../format.ts";
import type { Job, OutputFile } from "../types.ts";

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

/** Its size in pixels, its length, its bytes. */
export function factsOf(file: OutputFile): string {
  const facts = [
    file.width && `${file.width} × ${file.height}`,
    file.durationSeconds && `${Math.round(file.durationSeconds * 10) / 10} s`,
    bytes(file.sizeBytes),
  ];
  return facts.filter(Boolean).join(" · ");
}
