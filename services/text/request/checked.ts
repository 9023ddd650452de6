import type { JsonObject } from "#kit/base/json.ts";

/** A place of a body that holds bytes in base64, which are not text. */
export interface InlinePart {
  holder: JsonObject;
  field: "image_url" | "result" | "file_data" | "data";
}

/** A place of a body that holds an image. */
export interface ImagePart extends InlinePart {
  /** The object whose `image_url`, `file_id` or `result` it is. It is changed when the image is taken inline. */
  holder: JsonObject;
  /** `result`: base64 of an image that a model made in an earlier turn. */
  field: "image_url" | "result";
  /** Path of the holder. */
  param: string;
}

/** A place of a body that holds a PDF or audio. */
export interface FilePart extends InlinePart {
  /** The object with the file and its name. It is changed when the file is taken inline and labelled. */
  holder: JsonObject;
  /** `file_data`: a PDF, perhaps at a `file_url`. `data`: audio. */
  field: "file_data" | "data";
  /** Path of the holder. */
  param: string;
}

/** Opaque state of an upstream, and its place. */
export interface OpaquePart {
  value: string;
  param: string;
  /** True where the request is sent without state that the upstream may not get. Absent: then the request is refused. */
  isOptional?: true;
}

/** A body whose every field was checked, as far as that needs no other service. */
export interface CheckedBody {
  /** The body for the upstream, except that images and files must still be taken inline. */
  body: JsonObject;
  callerInstructions: string | null;
  /** True where a tool is run by the upstream itself, which puts text of its own into the input. */
  hosted: boolean;
  /** Types of the tools that the upstream carries out. */
  hostedTypes: readonly string[];
  /** Tokens that the upstream adds to describe tools that it knows by their type. */
  toolTokens: number;
  /** Bytes of names of tools that a template may write before each result of a call. */
  nameBytes: number;
  /** The caller's bound, at most the model's. */
  maxOutputTokens: number | undefined;
  images: ImagePart[];
  files: FilePart[];
  opaque: OpaquePart[];
  /** Nested properties (of items, messages, parts and tools) that are not sent to the upstream, for the header that names them. */
  leftOut: readonly string[];
  /** Number of messages, items and tools. Each takes a few tokens beyond its text. */
  items: number;
  /** The field that holds the input, for refusals that concern the whole input. */
  inputParam: "input" | "messages";
}
