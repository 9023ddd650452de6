import type { ImageErrorKind } from "./errors.ts";
import type { ImageFormat } from "./sniff.ts";

/** What is accepted. */
export type ImageRules = {
  readonly accept: readonly ImageFormat[];
  readonly maxBytes: number;
  /** Width times height, of one frame. */
  readonly maxPixels: number;
};

/** What decoding found. */
export type DecodedImage = {
  readonly format: ImageFormat;
  /** Pixels as a viewer sees them, after EXIF orientation. */
  readonly width: number;
  readonly height: number;
  /** More than 1 for an animated WebP, of which the first frame was decoded. */
  readonly frames: number;
  /** EXIF orientation, 1 to 8; 1 where there is none. */
  readonly orientation: number;
};

/** To a decoder process: an image as bytes, or the path of its file. */
export type DecodeRequest = ImageRules & { readonly source: Uint8Array | string };

/** From a decoder process. `exhausted` is its last word: it took too much memory. */
export type DecoderMessage =
  | { readonly type: "ready" }
  | { readonly type: "decoded"; readonly image: DecodedImage }
  | { readonly type: "refused"; readonly kind: ImageErrorKind }
  | { readonly type: "exhausted" };
