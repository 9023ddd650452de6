import type { JsonObject } from "#kit/json.ts";
import type { Job } from "../jobs/job.ts";

/**
 * The body that asks for what a job asked for: what its caller left open stays as it was then chosen, and its references
 * are the files that they were imported as.
 */
export function bodyOf({ spec, pinned }: Pick<Job, "spec" | "pinned">): JsonObject {
  const { request, model } = spec;
  const files = (pinned ?? []).map(({ fileId }) => fileId);
  const references: JsonObject = files.length > 0 ? { referenceFileIds: files } : {};
  switch (request.kind) {
    case "image":
      return {
        model,
        prompt: request.prompt,
        n: request.count,
        size: request.size ?? null,
        resolution: request.resolution ?? null,
        aspectRatio: request.aspectRatio ?? null,
        ...references,
      };
    case "video":
      return {
        model,
        prompt: request.prompt,
        seconds: request.durationSeconds,
        resolution: request.resolution,
        aspectRatio: request.aspectRatio,
        ...references,
      };
    case "music":
      return {
        model,
        mode: request.mode,
        title: request.title,
        description: request.description ?? null,
        lyrics: request.lyrics ?? null,
      };
  }
}
