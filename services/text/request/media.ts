import type { MeasuredFile } from "../tokens/files.ts";
import type { ImageSize } from "../tokens/patches.ts";
import type { CheckedBody, InlinePart } from "./checked.ts";
import { type FileSources, takeFiles } from "./files.ts";
import { type ImageSources, takeImages } from "./images.ts";

/** What of a request is no text, once it is as it goes up. */
export interface TakenMedia {
  /** Where images and files stand; an address that upstream fetches is text. */
  parts: readonly InlinePart[];
  sizes: readonly ImageSize[];
  files: readonly MeasuredFile[];
  /** Bytes of base64 that the body's weight holds and that are no text. */
  base64Bytes: number;
}

/** Of a request that is nothing but text. */
export const noMedia: TakenMedia = { parts: [], sizes: [], files: [], base64Bytes: 0 };

/** Checks the images and the files of a body, and takes them inline; see `takeImages` and `takeFiles`. */
export async function takeMedia(
  { images, files }: Pick<CheckedBody, "images" | "files">,
  sources: ImageSources & FileSources,
  taking: { accountId: string; inlineAddresses: boolean },
  signal: AbortSignal,
): Promise<TakenMedia> {
  if (images.length === 0 && files.length === 0) return noMedia;
  const seen = await takeImages(images, sources, taking, signal);
  const read = await takeFiles(files, sources, taking, signal);
  return {
    parts: [...seen.parts, ...files],
    sizes: seen.sizes,
    files: read.files,
    base64Bytes: seen.base64Bytes + read.base64Bytes,
  };
}
