// The rules, results and errors that the verifier shares with its decoder processes, and the messages between them.

import type { ImageFormat } from "./sniff.ts";

/** The images that are accepted. */
export type ImageRules = {
  readonly accept: readonly ImageFormat[];
  readonly maxBytes: number;
  /** Width times height, of one frame. */
  readonly maxPixels: number;
};

/** The result of decoding. */
export type DecodedImage = {
  readonly format: ImageFormat;
  /** Pixels as a viewer sees them, after EXIF orientation. */
  readonly width: number;
  readonly height: number;
  /** More than 1 for an animated WebP, of which the first frame was decoded. */
  readonly frames: number;
  /** EXIF orientation, 1 to 8. 1 where there is none. */
  readonly orientation: number;
};

/** To a decoder process: an image as bytes, or the path of its file. */
export type DecodeRequest = ImageRules & { readonly source: Uint8Array | string };

/** A message of a decoder process. `exhausted` is its last one: it took too much memory. */
export type DecoderMessage =
  | { readonly type: "ready" }
  | { readonly type: "decoded"; readonly image: DecodedImage }
  | { readonly type: "refused"; readonly kind: ImageErrorKind }
  | { readonly type: "exhausted" };

/**
 * Why an image was not verified. The first five are the image's fault, the last two are not:
 * - `unsupported_format`: no JPEG, PNG or WebP by its content, or one that is not accepted.
 * - `corrupt`: the decoder could not read it to its end, or crashed on it.
 * - `too_large`: more than `maxBytes`.
 * - `too_many_pixels`: more than `maxPixels`, or more memory to decode than a decoder may take.
 * - `timeout`: decoding took longer than allowed.
 * - `busy`: too many images of its own account wait, so try again later.
 * - `unavailable`: no decoder could run. All were busy for too long, or it failed to start, was killed, or the verifier is closed.
 */
export type ImageErrorKind =
  | "unsupported_format"
  | "corrupt"
  | "too_large"
  | "too_many_pixels"
  | "timeout"
  | "busy"
  | "unavailable";

const messages: Record<ImageErrorKind, string> = {
  unsupported_format: "not an image of an accepted format",
  corrupt: "the image is damaged",
  too_large: "the image has too many bytes",
  too_many_pixels: "the image has too many pixels",
  timeout: "the image took too long to decode",
  busy: "too many images of the account are waiting to be decoded",
  unavailable: "no image decoder is available",
};

/** A refusal. The message is fixed for the kind. `cause` is the reason why a decoder did not start. */
export class ImageError extends Error {
  readonly kind: ImageErrorKind;

  constructor(kind: ImageErrorKind, options?: ErrorOptions) {
    super(messages[kind], options);
    this.name = "ImageError";
    this.kind = kind;
  }
}
