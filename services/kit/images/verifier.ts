// Answers whether an image that came from outside can be decoded, by doing so in a process of its own. It shares the processes
// among accounts and replaces those that die.

import { open } from "node:fs/promises";
import { createFairShare, type FairShareBounds } from "#kit/share/fair-share.ts";
import type { Clock } from "#kit/time/clock.ts";
import { type DecoderProcess, startDecoder } from "./decoder-process.ts";
import {
  besidePixels,
  decoderIdleMs,
  decoderStartTimeoutMs,
  imageWaitMs,
  largeImagePixels,
  largestPixels,
  leastDecoderMemoryMb,
  sniffedBytes,
  waitingImages,
  waitingImagesUnpaid,
} from "./limits.ts";
import { type DecodedImage, type DecodeRequest, ImageError, type ImageRules } from "./protocol.ts";
import { checkHeader, imageMimeTypes, sniffFormat, sniffImage } from "./sniff.ts";

/** An image that was decoded to its last pixel. */
export type VerifiedImage = DecodedImage & {
  readonly mimeType: "image/jpeg" | "image/png" | "image/webp";
};

export type ImageVerifierOptions = {
  /**
   * The most decoder processes. Each starts with the first image that needs it. One account has all except one at most, so with two
   * processes another account always finds a place.
   */
  readonly processes: number;
  /** Resident memory of one process, in MiB, at least 128. 50 megapixels need up to 320. */
  readonly memoryMb: number;
  /** Milliseconds for one image, from the moment that a process has it. */
  readonly timeoutMs: number;
  /** Is the account known to pay? One that is not has a smaller share. Default: every account is. */
  readonly isPaying?: (accountId: string) => boolean;
  readonly clock?: Clock;
  /** A process without work ends after this, in ms, and gives its memory back. Default: 15 s. */
  readonly idleMs?: number;
};

/** The account to which an image belongs. */
export type ImageOwner = {
  /** The account in whose share the image is decoded. {@link ownImages} for images that no caller sent. */
  readonly accountId: string;
  readonly signal: AbortSignal;
};

/** The account name under which upstreams' answers are verified. It has a share beside those of the accounts. */
export const ownImages = "system";

/** Verifies images by decoding them in other processes. */
export type ImageVerifier = AsyncDisposable & {
  /**
   * Decodes the image to its last pixel. Bytes must not change until it answers. A string is the path of a file. Throws `ImageError`,
   * the signal's reason, or the error of the file system for a missing file.
   */
  verify(source: Uint8Array | string, rules: ImageRules, owner: ImageOwner): Promise<VerifiedImage>;
};

type Place = {
  decoder: DecoderProcess | undefined;
  isBusy: boolean;
  idle: NodeJS.Timeout | undefined;
};

const program = new URL("./decoder.ts", import.meta.url);

/**
 * Makes a verifier without a process. The first image starts one. Each process decodes one image at a time. A process that dies, is too
 * slow or takes too much memory is killed and replaced, and its image fails. A process without work ends after a while. Accounts take
 * turns. An image that finds its account's queue full is `busy`, and one that waits too long is `unavailable`. Disposing kills all
 * processes. Images that wait or are being decoded are then `unavailable`.
 */
export function createImageVerifier(options: ImageVerifierOptions): ImageVerifier {
  const { processes, memoryMb, idleMs = decoderIdleMs } = options;
  if (processes < 1 || memoryMb < leastDecoderMemoryMb) {
    throw new RangeError(`an image verifier needs a process and ${leastDecoderMemoryMb} MiB`);
  }
  const places = Array.from({ length: processes }, (): Place => {
    return { decoder: undefined, isBusy: false, idle: undefined };
  });
  const closing = new AbortController();
  const errors = {
    full: () => new ImageError("busy"),
    late: () => new ImageError("unavailable"),
  };
  const turns = createFairShare(boundsOf(processes), { ...options, ...errors });
  const largeTurns = createFairShare(largeBounds, { ...options, ...errors });

  async function decode(request: DecodeRequest): Promise<DecodedImage> {
    const free = places.filter((place) => !place.isBusy);
    // A living process comes first, so that occasional images need only one.
    const place = free.find(({ decoder }) => decoder?.isUsable()) ?? free[0];
    if (!place || closing.signal.aborted) throw new ImageError("unavailable");
    place.isBusy = true;
    clearTimeout(place.idle);
    try {
      if (!place.decoder?.isUsable()) {
        await place.decoder?.stop();
        const startTimeoutMs = decoderStartTimeoutMs;
        place.decoder = startDecoder({ ...options, program, startTimeoutMs });
      }
      return await place.decoder.decode(request);
    } finally {
      place.isBusy = false;
      place.idle = setTimeout(() => void place.decoder?.stop(), idleMs).unref();
    }
  }

  return {
    verify: async (source, rules, { accountId, signal }) => {
      const largePixels = await checkSource(source, rules);
      if (closing.signal.aborted) throw new ImageError("unavailable");
      const either = AbortSignal.any([signal, closing.signal]);
      using _large =
        largePixels > 0 ? await largeTurns.take(accountId, either, largePixels) : undefined;
      using _turn = await turns.take(accountId, either);
      const { accept, maxBytes, maxPixels } = rules;
      const image = await decode({ source, accept, maxBytes, maxPixels });
      return { ...image, mimeType: imageMimeTypes[image.format] };
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort(new ImageError("unavailable"));
      for (const { idle } of places) clearTimeout(idle);
      await Promise.all(places.map((place) => place.decoder?.stop()));
    },
  };
}

/** Pixels of large images that are decoded at once. */
const largeBounds: FairShareBounds = {
  places: largestPixels + besidePixels,
  each: { places: largestPixels, waiting: waitingImages },
  eachUnpaid: { places: largestPixels, waiting: waitingImagesUnpaid },
  waitMs: imageWaitMs,
};

function boundsOf(places: number): FairShareBounds {
  return {
    places,
    each: { places: Math.max(1, places - 1), waiting: waitingImages },
    eachUnpaid: { places: 1, waiting: waitingImagesUnpaid },
    waitMs: imageWaitMs,
  };
}

/**
 * Refuses an image that can be refused without a decoder. Answers the pixels of a large one, whose decoding may take hundreds of MiB.
 */
async function checkSource(source: Uint8Array | string, rules: ImageRules): Promise<number> {
  if (typeof source !== "string") {
    checkHeader(source, rules);
    return largePixelsOf(source);
  }
  await using file = await open(source);
  if ((await file.stat()).size > rules.maxBytes) throw new ImageError("too_large");
  const head = Buffer.alloc(sniffedBytes);
  const { bytesRead } = await file.read(head, 0, sniffedBytes, 0);
  return largePixelsOf(head.subarray(0, bytesRead));
}

/** 0: not large. A PNG is decoded row by row. Other decoders may hold the whole image. */
function largePixelsOf(head: Uint8Array): number {
  const format = sniffFormat(head);
  if (format === undefined || format === "png") return 0;
  const claimed = sniffImage(head);
  // An image whose header comes far behind the start counts as large.
  if (claimed === undefined) return largestPixels;
  const pixels = claimed.width * claimed.height;
  return pixels > largeImagePixels ? pixels : 0;
}
