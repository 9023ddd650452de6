// Takes the images and files of a request together, so that one bound covers both. The work itself is in `images.ts` and
// `files.ts`.

import type { Awaitable } from "#kit/base/awaitable.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isNativeChat } from "../../upstreams/protocols.ts";
import type { MeasuredFile } from "../tokens/files.ts";
import type { ImageSize } from "../tokens/patches.ts";
import type { CheckedBody, InlinePart } from "./checked.ts";
import { type FileSources, takeFiles } from "./files.ts";
import { type ImageSources, takeImages } from "./images.ts";

/** The parts of a request that are not text, in their form for the upstream. */
export interface TakenMedia {
  /** The places of images and files. An address that the upstream fetches is text. */
  parts: readonly InlinePart[];
  sizes: readonly ImageSize[];
  files: readonly MeasuredFile[];
  /** Bytes of base64 in the body's weight that are not text. */
  base64Bytes: number;
}

/** The media of a request that is only text. */
export const noMedia: TakenMedia = { parts: [], sizes: [], files: [], base64Bytes: 0 };

/** Checks the images and the files of a body, and takes them inline: see `takeImages` and `takeFiles`. */
export function takeMedia(
  found: Pick<CheckedBody, "images" | "files">,
  ...how: Taking
): Awaitable<TakenMedia> {
  const isText = found.images.length === 0 && found.files.length === 0;
  return isText ? noMedia : takeAll(found, ...how);
}

type Taking = [
  sources: ImageSources & FileSources,
  taking: { accountId: string; upstreams: readonly Upstream[] },
  signal: StopSignal,
];

async function takeAll(
  { images, files }: Pick<CheckedBody, "images" | "files">,
  ...[sources, { accountId, upstreams }, signal]: Taking
): Promise<TakenMedia> {
  // Servers with Chat Completions alone are the operator's own. They would fetch from its network.
  const inlineAddresses = upstreams.some(
    ({ inlineImages, protocol }) => inlineImages || isNativeChat(protocol),
  );
  const taking = { accountId, inlineAddresses };
  const seen = await takeImages(images, sources, taking, signalOf(signal));
  const read = await takeFiles(files, sources, taking, signalOf(signal));
  return {
    parts: [...seen.parts, ...files],
    sizes: seen.sizes,
    files: read.files,
    base64Bytes: seen.base64Bytes + read.base64Bytes,
  };
}
