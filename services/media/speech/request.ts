// Checks the body of a speech request, and prices it. Nothing is held before this.

import type { CatalogView } from "#common/agreements/catalog-client.ts";
import { codePoints, optionalNumber, optionalString, requiredString } from "#common/words/body.ts";
import { costOf } from "#common/words/money.ts";
import {
  maxModelIdCharacters,
  maxSpeechCharacters,
  speechSpeed,
} from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { type SoundFormat, soundFormats } from "#kit/sound/formats.ts";
import {
  type Model,
  ModelKind,
  type Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { generateLimits } from "../../upstreams/media/limits.ts";
import { spread } from "../../upstreams/pools/choice.ts";
import { offers } from "../requests/fields.ts";
import { estimatedBytes, estimatedSeconds, longestSeconds } from "./length.ts";

/** A speech request that is valid and priced. The hold is its next step. */
export interface PreparedSpeech {
  model: Model;
  upstreams: readonly Upstream[];
  catalogVersion: string;
  text: string;
  /** The upstreams' name of the voice. */
  voice: string;
  language: string | undefined;
  speed: number;
  format: SoundFormat;
  /** Unicode code points. */
  characters: number;
  /** The most bytes of its speech, as far as an estimate can tell. */
  mostBytes: number;
  /** USD micros. */
  pricePerMillion: bigint;
  amount: bigint;
}

/**
 * Validates a body against the catalog and prices it. Refuses with MODEL_NOT_FOUND, PERMISSION_DENIED, MISSING_REQUIRED_PARAMETER,
 * INVALID_TYPE, INVALID_VALUE, UNSUPPORTED_PARAMETER, UNSUPPORTED_VOICE or UNSUPPORTED_LANGUAGE at the field. A text whose speech
 * would be too long to keep is an INVALID_VALUE of the input.
 */
export function prepareSpeech(
  body: JsonObject,
  admission: Admission | undefined,
  view: CatalogView,
  { form, hears }: { form: BodyForm; hears: boolean },
): PreparedSpeech {
  const { model, spec } = speechModel(body, admission, view);
  const text = requiredString(body, "input", { notBlank: true, max: maxSpeechCharacters });
  const isOpenAi = form === BodyForm.OPENAI;
  if (isOpenAi) checkOpenAiSpeech(body, hears);
  const own = isOpenAi ? optionalVoice(body) : undefined;
  const format = isOpenAi ? formatOf(body, spec.formats) : "mp3";
  const voice = own ?? requiredString(body, "voice", { min: 1 });
  if (!spec.voices.includes(voice)) {
    refuse(ErrorReason.UNSUPPORTED_VOICE, {
      param: "voice",
      message: offers("voice", "voices", spec.voices),
    });
  }
  const language = optionalString(body, "language");
  if (language !== undefined && spec.languages.length > 0 && !spec.languages.includes(language)) {
    refuse(ErrorReason.UNSUPPORTED_LANGUAGE, {
      param: "language",
      message: offers("language", "languages", spec.languages),
    });
  }
  const speed = optionalNumber(body, "speed", speechSpeed) ?? speechSpeed.default;
  const upstreams = spread(view.upstreamsOf(model), model);
  const mostBytes = checkLength({ text, speed, format, upstreams, isOpenAi });
  const characters = codePoints(text);
  const pricePerMillion = spec.usdMicrosPerMillionCharacters;
  return {
    model,
    upstreams,
    catalogVersion: view.snapshot.version,
    text,
    voice: spec.upstreamVoices[voice] ?? voice,
    language,
    speed,
    format,
    characters,
    mostBytes,
    pricePerMillion,
    amount: costOf([{ units: BigInt(characters), perMillion: pricePerMillion }]),
  };
}

/**
 * The most bytes of the speech, as far as an estimate can tell. Refuses a text whose speech would have more bytes than are kept. An
 * upstream would speak all of it and be paid, but no caller would hear it.
 */
function checkLength({
  text,
  speed,
  format,
  upstreams,
  isOpenAi,
}: Pick<PreparedSpeech, "text" | "speed" | "format" | "upstreams"> & {
  isOpenAi: boolean;
}): number {
  const seconds = Math.min(estimatedSeconds(text, speed), longestSeconds(upstreams));
  const bytes = estimatedBytes(seconds, format);
  if (bytes <= generateLimits.speechBytes) return bytes;
  const minutes = Math.ceil(seconds / 60);
  const mebibytes = generateLimits.speechBytes / (1024 * 1024);
  const smaller = isOpenAi ? ", or ask for a smaller 'response_format'" : "";
  const message =
    `The speech would last some ${minutes} minutes, which as ${format} is more than the ${mebibytes} MiB ` +
    `that a speech may have: shorten 'input', raise 'speed'${smaller}.`;
  return refuse(ErrorReason.INVALID_VALUE, { param: "input", message });
}

/** Parameters of OpenAI that no model here supports, each with the values that change nothing. */
const unknown: Readonly<Record<string, readonly JsonValue[]>> = {
  instructions: [""],
  stream_format: ["audio"],
};

function checkOpenAiSpeech(body: JsonObject, hears: boolean): void {
  for (const [param, same] of Object.entries(unknown)) {
    const value = body[param] ?? null;
    // A caller that hears the audio while it is spoken may have it in events.
    const isHeard = hears && param === "stream_format" && value === "sse";
    if (value !== null && !same.includes(value) && !isHeard) {
      refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param });
    }
  }
}

/** The format of an OpenAI body, one of those that the model names. Models of an earlier catalog service name none and make MP3. */
function formatOf(body: JsonObject, named: readonly string[]): SoundFormat {
  const param = "response_format";
  const asked = optionalString(body, param) ?? "mp3";
  const offered = named.length > 0 ? named : ["mp3"];
  const format = soundFormats.find((one) => one === asked && offered.includes(one));
  if (format) return format;
  const message = offers("format", "formats", offered);
  return refuse(ErrorReason.UNSUPPORTED_PARAMETER, { param, message });
}

/** A voice that is given as an object, like OpenAI's custom voices. */
function optionalVoice({ voice }: JsonObject): string | undefined {
  return isJsonObject(voice) ? requiredString(voice, "id", { min: 1 }, "voice.id") : undefined;
}

function speechModel(body: JsonObject, admission: Admission | undefined, view: CatalogView) {
  const id = requiredString(body, "model", { min: 1 });
  if (id.length > maxModelIdCharacters) {
    refuse(ErrorReason.MODEL_NOT_FOUND, {
      param: "model",
      metadata: { model: id.slice(0, maxModelIdCharacters) },
    });
  }
  const model = view.findModel(id, ModelKind.SPEECH);
  const allowed = admission?.allowedModels ?? [];
  if (allowed.length > 0 && !allowed.includes(id)) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param: "model",
      message: "The API key may not use this model.",
    });
  }
  if (model.spec.case !== "speech") throw new TypeError("a speech model without its voices");
  return { model, spec: model.spec.value };
}
