// Prepares a request for a transcription, from its check to its price by the length of the audio. `prepare.ts` calls it for models
// of that kind.

import {
  optionalArray,
  optionalNumber,
  optionalObject,
  optionalString,
} from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import { readDataUri } from "#kit/images/index.ts";
import { ModelKind } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { soundUnitMs } from "../../upstreams/text/port.ts";
import { maxSoundPromptCharacters } from "../base/limits.ts";
import type { SoundKind } from "../files/measuring/sound.ts";
import { holdAmountOf, priceOfTranscription } from "../metering/pricing.ts";
import { capableUpstreams, findAllowed } from "./model.ts";
import type { ParsedRequest } from "./parse.ts";
import type { PrepareContext } from "./prepare.ts";
import { noConversation, type PreparedRequest } from "./prepared.ts";

/** Fields of a form that are sent to the upstream. */
const passed: ReadonlySet<string> = new Set([
  "include",
  "language",
  "model",
  "prompt",
  "response_format",
  "temperature",
  "timestamp_granularities",
]);
const mimeTypes: Readonly<Record<SoundKind, string>> = {
  flac: "audio/flac",
  m4a: "audio/mp4",
  mp3: "audio/mpeg",
  ogg: "audio/ogg",
  wav: "audio/wav",
  webm: "audio/webm",
};
/** Parameters of OpenAI's that are not supported here. */
const unknown = ["chunking_strategy", "known_speaker_names", "known_speaker_references"];

/**
 * Validates a request for a transcription, measures its audio and prices it. Its hold is for the longest audio that its bytes can be,
 * at most the model's maximum. Refuses with the public code and the wrong field.
 */
export async function prepareTranscription(
  { operation, form, body: asked }: ParsedRequest,
  { accountId, admission }: { accountId: string; admission: Admission | undefined },
  { view, soundMeter }: PrepareContext,
  signal: StopSignal,
): Promise<PreparedRequest> {
  const model = findAllowed(asked, ModelKind.TRANSCRIPTION, view, admission);
  if (model.spec.case !== "transcription") throw new TypeError("a model without its price");
  const upstreams = capableUpstreams(operation, model, view);
  checkFields(asked);
  const file = optionalObject(asked, "file");
  if (!file) return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "file" });
  const bytes = await bytesOf(file);
  const sound = await soundMeter.measure(bytes, {
    accountId,
    signal: signalOf(signal),
  });
  if (!sound) {
    return refuse(ErrorReason.INVALID_VALUE, {
      param: "file",
      message: "The file must be a sound (MP3, WAV, FLAC, M4A, MP4, OGG or WebM).",
    });
  }
  const { maxSeconds } = model.spec.value;
  if (sound.seconds > maxSeconds) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "file",
      message: `The model takes at most ${maxSeconds} seconds of sound.`,
    });
  }
  const units = unitsOf(sound.seconds);
  const mostUnits = unitsOf(Math.min(sound.mostSeconds, Number(maxSeconds)));
  const price = priceOfTranscription(model.spec.value);
  const bounds = { input: mostUnits, output: 0 };
  const { file: _, ...fields } = asked;
  const name = optionalString(file, "name", {}, "file") || "sound";
  const fileName = `${name.replace(/\.[^.]*$/, "")}.${sound.kind}`;
  return {
    ...noConversation,
    operation,
    form,
    model,
    catalogVersion: view.snapshot.version,
    upstreams,
    body: Object.fromEntries(Object.entries(fields).filter(([one]) => passed.has(one))),
    asked: fields,
    price,
    bounds,
    holdAmount: holdAmountOf(price, bounds),
    tokensAsSuch: units,
    sound: { bytes: sound.bytes, fileName, mimeType: mimeTypes[sound.kind], units, mostUnits },
    guessedInput: units,
  };
}

function unitsOf(seconds: number): number {
  return Math.ceil((seconds * 1_000) / soundUnitMs);
}

function checkFields(body: JsonObject): void {
  optionalString(body, "language", { max: 64 });
  optionalString(body, "prompt", { max: maxSoundPromptCharacters });
  optionalNumber(body, "temperature", { min: 0, max: 1 });
  for (const name of ["include", "timestamp_granularities"]) {
    for (const [index, one] of (optionalArray(body, name) ?? []).entries()) {
      const param = `${name}[${index}]`;
      if (typeof one !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
    }
  }
  const format = optionalString(body, "response_format");
  if (format !== undefined && format !== "json" && format !== "verbose_json") {
    refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param: "response_format" });
  }
  if (body.stream === true) refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param: "stream" });
  for (const param of unknown) {
    if ((body[param] ?? null) !== null) refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param });
  }
}

async function bytesOf(file: JsonObject): Promise<Uint8Array<ArrayBuffer>> {
  const url = optionalString(file, "url", {}, "file") ?? "";
  const read = await readDataUri(url);
  return read?.bytes ?? refuse(ErrorReason.INVALID_VALUE, { param: "file" });
}
