export type { Mark } from "./manifest.ts";
export { markedTypes, markImage, markMp4, type Unmarked } from "./mark.ts";
export { type FoundOrigin, hasOrigin, type Origin, readHeadBytes, readOrigin } from "./read.ts";
export { chainFault, createSigner, type Signer, SignerKeyError } from "./signer.ts";
