// Gives the values of a generation the names that templates use. `call.ts` puts them into the model's template.

import { createHash } from "node:crypto";
import type { CallValues } from "#kit/template/template.ts";
import { videoDimensions } from "../media/dimensions.ts";
import type { GenerationRequest, GenerationTask } from "../media/port.ts";

/**
 * The values of a generation for its model's template, by the names that the check of a catalog allows (catalog/calls.ts).
 * `references`: the upstream's form of each reference.
 */
export function valuesOf(
  task: Pick<GenerationTask, "request" | "jobId" | "references">,
  references: readonly string[],
): CallValues {
  const { request, jobId } = task;
  const hasMask = request.kind === "image" && request.hasMask === true;
  const images = hasMask ? references.slice(0, -1) : [...references];
  const given = {
    ...(images.length > 0 && { references: images }),
    ...(hasMask && { mask: references.at(-1) }),
  };
  const { seed = seedOf(jobId), negativePrompt }: Extras & { kind: string } = request;
  const common = { seed, negativePrompt, ...given };
  switch (request.kind) {
    case "image": {
      const { prompt, count, width, height, size, resolution, aspectRatio } = request;
      // A caller's "auto" is the same as no value.
      const named = size === "auto" ? undefined : size;
      return { ...common, prompt, count, width, height, size: named, resolution, aspectRatio };
    }
    case "video":
      return { ...common, ...videoValues(request, task.references[0]) };
    case "music": {
      const { mode: musicMode, title, description, lyrics } = request;
      return { ...common, musicMode, title, description, lyrics };
    }
  }
}

/** Fields that a request of every kind may have. Jobs of earlier versions have none of them. */
interface Extras {
  seed?: number | undefined;
  negativePrompt?: string | undefined;
}

function videoValues(
  request: Extract<GenerationRequest, { kind: "video" }>,
  reference: GenerationTask["references"][number] | undefined,
): CallValues {
  const { prompt, durationSeconds: seconds, resolution, aspectRatio, audio } = request;
  const { width, height } = videoDimensions(resolution, aspectRatio, reference);
  return { prompt, seconds, resolution, aspectRatio, width, height, audio: audio !== "none" };
}

/** The same for every attempt of a job, and different for each job. It has 31 bits, the most that all upstreams take. */
export function seedOf(jobId: string): number {
  return createHash("sha256").update(jobId).digest().readUInt32BE(0) >>> 1;
}
