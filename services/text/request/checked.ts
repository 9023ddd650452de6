// The findings of a check in one form for all protocols. So the steps behind it, from images to prices, are the same for each.

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
  /** The caller's own path of its address or bytes. Absent: `field` of the holder. */
  at?: string;
  /** May it be a WebP? Absent: only one of an earlier answer may. */
  takesWebp?: true;
}

/** A place of a body that holds a PDF or audio. */
export interface FilePart extends InlinePart {
  /** The object with the file and its name. It is changed when the file is taken inline and labelled. */
  holder: JsonObject;
  /** `file_data`: a PDF, perhaps at a `file_url`. `data`: audio. */
  field: "file_data" | "data";
  /** Path of the holder. */
  param: string;
  /** The caller's own path of its address or bytes. Absent: a field of the holder. */
  at?: string;
}

/** Opaque state of an upstream, and its place. */
export interface OpaquePart {
  value: string;
  param: string;
  /** True where the request is sent without state that the upstream may not get. Absent: then the request is refused. */
  isOptional?: true;
  /**
   * It was made here around an upstream's state, so that one that is unknown is no state. It is left out then, and where another
   * upstream made it. That of another account is refused with this message. Absent: the state is an upstream's own.
   */
  carried?: { message: string };
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
  /** Bytes that a template may write again: names of tools before each result of a call, and arguments of calls. */
  nameBytes: number;
  /** The caller's bound, at most the model's. */
  maxOutputTokens: number | undefined;
  /** Tokens to which that bound may fall, where balance or key pay for less than it. Absent: it is kept. */
  mayFallTo?: number;
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
