import { optionalString, requiredString } from "#kit/body.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { JsonObject } from "#kit/json.ts";
import type { MusicSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxPromptCharacters, maxTitleCharacters } from "../limits.ts";
import type { PricedRequest } from "./index.ts";

const modes = ["instrumental", "lyrics"] as const;
const text = { max: maxPromptCharacters };

/** Checks a music job's body. */
export function readMusic(body: JsonObject, spec: MusicSpec): PricedRequest {
  const mode = requiredString(body, "mode", { min: 1, oneOf: modes }) as (typeof modes)[number];
  const title = requiredString(body, "title", { min: 1, max: maxTitleCharacters });
  const description = optionalString(body, "description", text);
  const lyrics = optionalString(body, "lyrics", text) || undefined;
  if (mode === "lyrics" && lyrics === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, {
      param: "lyrics",
      message: "The mode 'lyrics' needs lyrics.",
    });
  }
  if (mode === "instrumental" && lyrics !== undefined) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "lyrics",
      message: "The mode 'instrumental' takes no lyrics.",
    });
  }
  return {
    mode,
    price: spec.creditPrice,
    request: { kind: "music", mode, title, description, lyrics },
  };
}
