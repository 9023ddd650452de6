// Checks the body of a music job, and prices it.

import { optionalString, requiredString } from "#common/words/body.ts";
import { maxPromptCharacters, musicModes } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { MusicSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxTitleCharacters } from "../limits.ts";
import type { PricedRequest } from "./index.ts";

const text = { max: maxPromptCharacters };

/** Checks a music job's body. */
export function readMusic(body: JsonObject, spec: MusicSpec): PricedRequest {
  const sent = requiredString(body, "mode", { min: 1, oneOf: musicModes });
  const mode = sent as (typeof musicModes)[number];
  const title = requiredString(body, "title", { notBlank: true, max: maxTitleCharacters });
  const description = optionalString(body, "description", text);
  // An empty text counts as none, like null.
  const lyrics = optionalString(body, "lyrics", text) || undefined;
  // White space alone cannot be sung.
  if (mode === "lyrics" && !lyrics?.trim()) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, {
      param: "lyrics",
      message: "The mode 'lyrics' needs 'lyrics'. Send them, or the mode 'instrumental'.",
    });
  }
  if (mode === "instrumental" && lyrics !== undefined) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "lyrics",
      message:
        "The mode 'instrumental' takes no 'lyrics'. Leave them out, or send the mode 'lyrics'.",
    });
  }
  return {
    mode,
    price: spec.creditPrice,
    request: { kind: "music", mode, title, description, lyrics },
  };
}
