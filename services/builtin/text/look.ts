// Finds the size of an image in a prompt by its header, so that the text model can name and count it.

import { sniffFormat, sniffImage } from "#kit/images/sniff.ts";

/** The facts of an image that are known without decoding it. */
export interface Look {
  type: "PNG" | "JPEG" | "WebP" | "image";
  /** Pixels. 0 where the header does not show them. */
  width: number;
  height: number;
  /** Is it a URL, which is not fetched, and no inline image? */
  isRemote: boolean;
}

const names = { png: "PNG", jpeg: "JPEG", webp: "WebP" } as const;
/** Base64 digits of 512 KiB. A JPEG's size comes after its metadata, which may hold a preview image. */
const headerDigits = (512 * 1024 * 4) / 3;

/** The image of an `image_url`: the header of a data URI, and no facts for another URL. */
export function lookAt(url: string): Look {
  const start = /^data:[^,]*;base64,/i.exec(url.slice(0, 200))?.[0].length;
  if (start === undefined) return { type: "image", width: 0, height: 0, isRemote: true };
  const head = Buffer.from(url.slice(start, start + headerDigits), "base64");
  const format = sniffFormat(head);
  const { width = 0, height = 0 } = sniffImage(head) ?? {};
  return { type: format ? names[format] : "image", width, height, isRemote: false };
}

/** Tokens of an image: one for each patch of 32 pixels, at most 1,536. Those of a small image where no size is known. */
export function imageTokens({ width, height }: Look, detail: unknown): number {
  const patches = Math.ceil(width / 32) * Math.ceil(height / 32);
  const most = detail === "low" ? 256 : 1536;
  return patches === 0 ? 64 : Math.min(patches, most);
}
