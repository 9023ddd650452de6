// Judges image bodies in OpenAI's form: parameters that have no effect here, and the form of the answer.

import { optionalString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { BodyForm, ImageAnswer } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { MediaKind } from "../jobs/job.ts";

/** The form in which a body is written. An image job's body has OpenAI's form also where it asks for a format of the answer. */
export function bodyFormOf(kind: MediaKind, form: BodyForm, body: JsonObject): BodyForm {
  if (kind !== "image") return BodyForm.UNSPECIFIED;
  const asks = body.response_format !== undefined && body.response_format !== null;
  return form === BodyForm.UNSPECIFIED && asks ? BodyForm.OPENAI : form;
}

const answers: Readonly<Record<string, ImageAnswer>> = {
  b64_json: ImageAnswer.B64_JSON,
  url: ImageAnswer.URL,
};

/**
 * The form of the images in the answer of OpenAI's route: base64 by default, as OpenAI's own image models answer. Refuses with
 * INVALID_TYPE or INVALID_VALUE.
 */
export function readImageAnswer(form: BodyForm, body: JsonObject): ImageAnswer {
  if (form === BodyForm.UNSPECIFIED) return ImageAnswer.UNSPECIFIED;
  const oneOf = Object.keys(answers);
  const wanted = optionalString(body, "response_format", { oneOf }) ?? "b64_json";
  return answers[wanted] ?? ImageAnswer.B64_JSON;
}

/**
 * OpenAI's parameters that no model here knows, each with the values that ask for the usual behaviour. `n`, `size`, `seed` and
 * `negativePrompt` belong to the job, and are checked there.
 */
const unknown: Readonly<Record<string, readonly JsonValue[]>> = {
  background: ["auto"],
  input_fidelity: [],
  moderation: ["auto"],
  output_compression: [],
  output_format: [],
  partial_images: [0],
  quality: ["auto", "standard"],
  stream: [false],
  style: [],
};

/**
 * Refuses a parameter whose effect would be missing in the images with UNSUPPORTED_PARAMETER, by its name. `takesQuality`: the model has
 * prices by quality, and checks the quality itself.
 */
export function checkOpenAiImage(body: JsonObject, takesQuality: boolean): void {
  for (const [param, same] of Object.entries(unknown)) {
    if (param === "quality" && takesQuality) continue;
    const value = body[param] ?? null;
    if (value !== null && !same.includes(value)) {
      refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param });
    }
  }
}
