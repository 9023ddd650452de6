// The parts of this room that others import: marking a file that a model made, reading a file's origin, and judging a signer's
// certificates.

export type { Mark } from "./manifest.ts";
export { markedTypes, markImage, markMp4, type Unmarked } from "./mark.ts";
export { type FoundOrigin, hasOrigin, type Origin, readHeadBytes, readOrigin } from "./read.ts";
export { chainFault, createSigner, type Signer, SignerKeyError } from "./signer.ts";
