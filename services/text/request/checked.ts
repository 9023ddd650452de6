import type { JsonObject } from "#kit/json.ts";

/** A place of a body that holds an image. */
export interface ImagePart {
  /** The object whose `image_url`, `file_id` or `result` it is; changed in place when the image is taken inline. */
  holder: JsonObject;
  /** `result`: base64 of an image that a model made in an earlier turn. */
  field: "image_url" | "result";
  /** Path of the holder. */
  param: string;
}

/** Opaque state of an upstream, and where it stood. */
export interface OpaquePart {
  value: string;
  param: string;
}

/** A body whose every field was checked as far as that goes without asking anyone. */
export interface CheckedBody {
  /** As it goes up, but for the images that are still to be taken inline. */
  body: JsonObject;
  callerInstructions: string | null;
  /** A tool that upstream runs itself, which puts text of its own into the input. */
  hosted: boolean;
  /** As asked for, at most the model's. */
  maxOutputTokens: number | undefined;
  images: ImagePart[];
  opaque: OpaquePart[];
  /** Messages, items and tools: each costs a few tokens beyond its text. */
  items: number;
  /** The field that holds the input, for refusals that concern it as a whole. */
  inputParam: "input" | "messages";
}
