import { ImageError } from "./errors.ts";
import type { ImageRules } from "./protocol.ts";
import { type ImageFormat, sniffFormat, sniffImage } from "./sniff.ts";

/**
 * Refuses by size, first bytes and the header's claims, before anything is decoded; gives the
 * format. Cheap: it is asked before an image goes to a decoder, and there again.
 */
export function checkHeader(bytes: Uint8Array, rules: ImageRules): ImageFormat {
  if (bytes.length > rules.maxBytes) throw new ImageError("too_large");
  const format = sniffFormat(bytes);
  if (format === undefined || !rules.accept.includes(format)) {
    throw new ImageError("unsupported_format");
  }
  const claimed = sniffImage(bytes);
  if (claimed !== undefined && claimed.width * claimed.height > rules.maxPixels) {
    throw new ImageError("too_many_pixels");
  }
  return format;
}
