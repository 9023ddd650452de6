// The parts of this room that others import. Decoders and their processes stay inside.

export {
  type DataUri,
  isDataUri,
  isTooLong,
  readDataUri,
  readImageUri,
} from "./data-uri.ts";
export { pngBeginningBytes, pngHasAlpha } from "./png-alpha.ts";
export type { ImageRules } from "./protocol.ts";
export { ImageError, type ImageErrorKind } from "./protocol.ts";
export { type ImageFormat, type ImageHeader, imageMimeTypes, sniffImage } from "./sniff.ts";
export {
  createImageVerifier,
  type ImageOwner,
  type ImageVerifier,
  type ImageVerifierOptions,
  ownImages,
  type VerifiedImage,
} from "./verifier.ts";
