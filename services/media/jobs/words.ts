import type { GenerationRequest } from "../generate/port.ts";
import type { JobSpec } from "./job.ts";

/** What the caller wrote is kept no longer than it is of use. */
export function withoutWords(spec: JobSpec): JobSpec {
  return { ...spec, request: wordless(spec.request), references: [] };
}

function wordless(request: GenerationRequest): GenerationRequest {
  switch (request.kind) {
    case "image":
    case "video":
      return { ...request, prompt: "" };
    case "music":
      return { ...request, title: "", description: undefined, lyrics: undefined };
  }
}
