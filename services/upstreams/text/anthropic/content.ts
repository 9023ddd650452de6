// Translates content of Responses, such as texts, images and files, into blocks of Messages.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { sourceOf } from "./source.ts";
import { untranslatable } from "./untranslatable.ts";

/** Fields of parts that mean nothing to a model of Messages, where they say more than nothing. */
const lost = ["annotations", "detail"] as const;

/**
 * Content of a message or of a call's output as blocks. Blank texts are left out, because Anthropic refuses them. `leftOut` gets the
 * names of fields that have no counterpart.
 */
export function blocksOf(
  content: JsonValue | undefined,
  param: string,
  leftOut: Set<string>,
): JsonObject[] {
  if (typeof content === "string") return textBlocks(content);
  if (!Array.isArray(content)) return [];
  return content.flatMap((part, index) =>
    isJsonObject(part) ? blocksOfPart(part, `${param}[${index}]`, leftOut) : [],
  );
}

/** A text as blocks: one, or none where it is blank. */
export function textBlocks(text: JsonValue | undefined): JsonObject[] {
  return typeof text === "string" && text.trim() !== "" ? [{ type: "text", text }] : [];
}

function blocksOfPart(part: JsonObject, param: string, leftOut: Set<string>): JsonObject[] {
  for (const name of lost) {
    const value = part[name];
    const isSaid = Array.isArray(value) ? value.length > 0 : typeof value === "string";
    if (isSaid) leftOut.add(`input.content.${name}`);
  }
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return textBlocks(part.text);
    case "refusal":
      return textBlocks(part.refusal);
    case "input_image":
      return [{ type: "image", source: sourceHere(part.image_url) }];
    case "input_file": {
      const title = part.filename;
      const source = sourceHere(part.file_data);
      return [{ type: "document", source, ...(typeof title === "string" && { title }) }];
    }
    default:
      return untranslatable(`${param}.type`, "The model takes texts, images and PDFs.");
  }
}

/** Before media are taken in, a file of the account has no address yet. */
function sourceHere(uri: JsonValue | undefined): JsonObject {
  return sourceOf(typeof uri === "string" ? uri : "");
}
