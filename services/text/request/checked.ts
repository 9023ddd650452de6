import type { JsonObject } from "#kit/base/json.ts";

/** A place of a body that holds bytes in base64, which are no text. */
export interface InlinePart {
  holder: JsonObject;
  field: "image_url" | "result" | "file_data" | "data";
}

/** A place of a body that holds an image. */
export interface ImagePart extends InlinePart {
  /** The object whose `image_url`, `file_id` or `result` it is; changed in place when the image is taken inline. */
  holder: JsonObject;
  /** `result`: base64 of an image that a model made in an earlier turn. */
  field: "image_url" | "result";
  /** Path of the holder. */
  param: string;
}

/** A place of a body that holds a PDF or a sound. */
export interface FilePart extends InlinePart {
  /** The object with the file, and what it is called; changed in place when the file is taken inline and labelled. */
  holder: JsonObject;
  /** `file_data`: a PDF, at a `file_url` perhaps; `data`: a sound. */
  field: "file_data" | "data";
  /** Path of the holder. */
  param: string;
}

/** Opaque state of an upstream, and where it stood. */
export interface OpaquePart {
  value: string;
  param: string;
  /** Where it may not go up the request goes without it. Absent: the request is refused then. */
  isOptional?: true;
}

/** A body whose every field was checked as far as that goes without another service. */
export interface CheckedBody {
  /** As it goes up, but for the images and files that are still to be taken inline. */
  body: JsonObject;
  callerInstructions: string | null;
  /** A tool that upstream runs itself, which puts text of its own into the input. */
  hosted: boolean;
  /** Tokens that upstream adds to describe tools that it knows by their type. */
  toolTokens: number;
  /** Bytes of names of tools that a template may write before each result of a call. */
  nameBytes: number;
  /** As asked for, at most the model's. */
  maxOutputTokens: number | undefined;
  images: ImagePart[];
  files: FilePart[];
  opaque: OpaquePart[];
  /** Properties within items, messages, parts and tools that do not go up, for the header that names them. */
  leftOut: readonly string[];
  /** Messages, items and tools: each costs a few tokens beyond its text. */
  items: number;
  /** The field that holds the input, for refusals that concern it as a whole. */
  inputParam: "input" | "messages";
}
