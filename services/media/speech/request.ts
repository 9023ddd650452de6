import { codePoints, optionalNumber, optionalString, requiredString } from "#kit/body.ts";
import type { CatalogView } from "#kit/catalog-client.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { JsonObject } from "#kit/json.ts";
import { costOf } from "#kit/money.ts";
import { offers } from "#kit/offers.ts";
import {
  type Model,
  ModelKind,
  type Upstream,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { maxInputLength, maxModelIdLength, speedBounds } from "./limits.ts";

/** A speech request that is valid and priced: nothing stands between it and its hold. */
export interface PreparedSpeech {
  model: Model;
  upstreams: readonly Upstream[];
  catalogVersion: string;
  text: string;
  voice: string;
  language: string | undefined;
  speed: number;
  /** Unicode code points. */
  characters: number;
  /** USD micros. */
  pricePerMillion: bigint;
  amount: bigint;
}

/**
 * Validates a body against the catalog and prices it. Refuses with MODEL_NOT_FOUND, PERMISSION_DENIED,
 * MISSING_REQUIRED_PARAMETER, INVALID_TYPE, INVALID_VALUE, UNSUPPORTED_VOICE or UNSUPPORTED_LANGUAGE at the field.
 */
export function prepareSpeech(
  body: JsonObject,
  admission: Admission | undefined,
  view: CatalogView,
): PreparedSpeech {
  const { model, spec } = speechModel(body, admission, view);
  const text = requiredString(body, "input", { min: 1, max: maxInputLength });
  // Half a character cannot be sent anywhere as UTF-8.
  if (!text.isWellFormed()) refuse(ErrorReason.INVALID_VALUE, { param: "input" });
  const voice = requiredString(body, "voice", { min: 1 });
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
  const speed = optionalNumber(body, "speed", speedBounds) ?? 1;
  const characters = codePoints(text);
  const pricePerMillion = spec.usdMicrosPerMillionCharacters;
  return {
    model,
    upstreams: view.upstreamsOf(model),
    catalogVersion: view.snapshot.version,
    text,
    voice,
    language,
    speed,
    characters,
    pricePerMillion,
    amount: costOf([{ units: BigInt(characters), perMillion: pricePerMillion }]),
  };
}

function speechModel(body: JsonObject, admission: Admission | undefined, view: CatalogView) {
  const id = requiredString(body, "model", { min: 1 });
  if (id.length > maxModelIdLength) {
    refuse(ErrorReason.MODEL_NOT_FOUND, {
      param: "model",
      metadata: { model: id.slice(0, maxModelIdLength) },
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
