import sharp, { type Metadata, type Sharp } from "sharp";
import { hasEnd } from "./ends.ts";
import { ImageError } from "./errors.ts";
import { checkHeader } from "./header.ts";
import type { DecodedImage, ImageRules } from "./protocol.ts";

/** Leaves libvips with three loaders, one thread and no cache. For decoder processes only. */
export function prepareDecoding(): void {
  sharp.cache(false);
  sharp.concurrency(1);
  sharp.block({ operation: ["VipsForeignLoad"] });
  sharp.unblock({
    operation: ["VipsForeignLoadJpeg", "VipsForeignLoadPng", "VipsForeignLoadWebp"],
  });
}

/**
 * Decodes an image to its last pixel and says what it is. What the decoder reads decides: names
 * and declared types play no part, and bytes after the end of the image are allowed (cameras put
 * previews and videos there). Of an animation the first frame is decoded. Throws `ImageError`.
 */
export async function decodeImage(bytes: Uint8Array, rules: ImageRules): Promise<DecodedImage> {
  const format = checkHeader(bytes, rules);
  const image = sharp(bytes, {
    // Not "warning": cameras and old tools write files that libjpeg and libpng warn about and
    // every viewer shows. Truncation is an error.
    failOn: "error",
    limitInputPixels: rules.maxPixels,
    ignoreIcc: true,
  });
  const metadata = await orRefuse<Metadata>(image.metadata());
  if (metadata.format !== format) throw new ImageError("unsupported_format");
  const { width, height } = metadata.autoOrient;
  if (width * height > rules.maxPixels) throw new ImageError("too_many_pixels");
  if (!hasEnd(bytes, format)) throw new ImageError("corrupt");
  await readPixels(metadata.space === "cmyk" ? asCmyk(image) : image);
  const { orientation = 1, pages = 1 } = metadata;
  // Other values stand in broken files; every viewer shows those as they are stored.
  const isTurned = orientation >= 1 && orientation <= 8;
  return { format, width, height, frames: pages, orientation: isTurned ? orientation : 1 };
}

/** Leaves four inks as they are: their conversion to RGB takes four times the decoding. */
function asCmyk(image: Sharp): Sharp {
  return image.pipelineColourspace("cmyk").toColourspace("cmyk");
}

/** Every pixel passes the decoder, one channel of them is kept: less memory, same errors. */
async function readPixels(image: Sharp): Promise<void> {
  await orRefuse(image.extractChannel(0).raw().toBuffer());
}

async function orRefuse<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    // sharp's errors differ by their text alone.
    const text = error instanceof Error ? error.message : "";
    const isTooMuch = /pixel limit|out of memory|unable to allocate/i.test(text);
    throw new ImageError(isTooMuch ? "too_many_pixels" : "corrupt");
  }
}
