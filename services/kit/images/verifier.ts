import { stat } from "node:fs/promises";
import { type DecoderProcess, startDecoder } from "./decoder-process.ts";
import { ImageError } from "./errors.ts";
import { checkHeader } from "./header.ts";
import { decoderStartTimeoutMs, leastDecoderMemoryMb, queuedImages } from "./limits.ts";
import type { DecodedImage, DecodeRequest, ImageRules } from "./protocol.ts";
import { imageMimeTypes } from "./sniff.ts";

/** An image that was decoded to its last pixel. */
export type VerifiedImage = DecodedImage & {
  readonly mimeType: "image/jpeg" | "image/png" | "image/webp";
};

export type ImageVerifierOptions = {
  /** Decoder processes at most; each starts with the first image that needs it. */
  readonly processes: number;
  /** Resident memory of one process, in MiB, at least 128. 50 megapixels need up to 700. */
  readonly memoryMb: number;
  /** For one image, from the moment that a process has it. */
  readonly timeoutMs: number;
};

/** Verifies images by decoding them in other processes. */
export type ImageVerifier = AsyncDisposable & {
  /**
   * Decodes the image to its last pixel. Bytes must not change until it answers; a string is the
   * path of a file. Throws `ImageError`, or the error of the file system for a file that is not
   * there.
   */
  verify(source: Uint8Array | string, rules: ImageRules): Promise<VerifiedImage>;
};

type Waiting = PromiseWithResolvers<DecodedImage> & { readonly request: DecodeRequest };
type Place = { decoder: DecoderProcess | undefined; isBusy: boolean };

const program = new URL("./decoder.ts", import.meta.url);

/**
 * A verifier without a process yet: the first image starts one. Each process decodes one image
 * at a time and lives on; one that dies, is too slow or too large is killed and replaced, and
 * costs the image that it had. Up to 64 images wait in order, further ones are `busy`.
 * Disposing kills all processes; what waits or runs is `unavailable`.
 */
export function createImageVerifier(options: ImageVerifierOptions): ImageVerifier {
  if (options.processes < 1 || options.memoryMb < leastDecoderMemoryMb) {
    throw new RangeError(`an image verifier needs a process and ${leastDecoderMemoryMb} MiB`);
  }
  const waiting: Waiting[] = [];
  const places = Array.from({ length: options.processes }, (): Place => {
    return { decoder: undefined, isBusy: false };
  });
  let isClosed = false;

  function advance(): void {
    const free = places.filter((place) => !place.isBusy);
    // A living process first, so that a trickle of images needs only one.
    const place = free.find(({ decoder }) => decoder?.isUsable()) ?? free[0];
    const next = place === undefined ? undefined : waiting.shift();
    if (place === undefined || next === undefined) return;
    place.isBusy = true;
    void work(place, next).finally(() => {
      place.isBusy = false;
      advance();
    });
  }

  async function work(place: Place, { request, resolve, reject }: Waiting): Promise<void> {
    try {
      if (isClosed) throw new ImageError("unavailable");
      if (!place.decoder?.isUsable()) {
        await place.decoder?.stop();
        const startTimeoutMs = decoderStartTimeoutMs;
        place.decoder = startDecoder({ ...options, program, startTimeoutMs });
      }
      resolve(await place.decoder.decode(request));
    } catch (error) {
      reject(error);
    }
  }

  return {
    verify: async (source, rules) => {
      if (typeof source !== "string") checkHeader(source, rules);
      else if ((await stat(source)).size > rules.maxBytes) throw new ImageError("too_large");
      if (isClosed) throw new ImageError("unavailable");
      if (waiting.length >= queuedImages) throw new ImageError("busy");
      const { accept, maxBytes, maxPixels } = rules;
      const request = { source, accept, maxBytes, maxPixels };
      const entry = { ...Promise.withResolvers<DecodedImage>(), request };
      waiting.push(entry);
      advance();
      const image = await entry.promise;
      return { ...image, mimeType: imageMimeTypes[image.format] };
    },
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      for (const { reject } of waiting.splice(0)) reject(new ImageError("unavailable"));
      await Promise.all(places.map((place) => place.decoder?.stop()));
    },
  };
}
