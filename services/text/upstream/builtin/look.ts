/** What can be said of an image without decoding it. */
export interface Look {
  type: "PNG" | "JPEG" | "WebP" | "image";
  /** Pixels; 0 where the header does not tell. */
  width: number;
  height: number;
  /** Of the file. */
  bytes: number;
  /** Not inline: a URL, which is not fetched. */
  isRemote: boolean;
}

/** A JPEG's size comes after its metadata, which may hold a preview image. */
const headerBytes = 512 * 1024;

/** What an `image_url` shows: of a data URI its header, of another URL nothing. */
export function lookAt(url: string): Look {
  const match = /^data:[^,]*;base64,/i.exec(url.slice(0, 200));
  if (!match) return { type: "image", width: 0, height: 0, bytes: 0, isRemote: true };
  const start = match[0].length;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  const bytes = Math.max(0, Math.floor(((url.length - start) * 3) / 4) - padding);
  const head = Buffer.from(url.slice(start, start + Math.ceil((headerBytes * 4) / 3)), "base64");
  return { type: "image", width: 0, height: 0, ...sizeOf(head), bytes, isRemote: false };
}

type Size = Pick<Look, "type" | "width" | "height">;

function sizeOf(head: Buffer): Size | undefined {
  if (head.length >= 24 && head.readUInt32BE(0) === 0x89504e47) {
    return { type: "PNG", width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  }
  if (head.length >= 30 && head.toString("latin1", 8, 12) === "WEBP") return webpSize(head);
  if (head.length >= 4 && head.readUInt16BE(0) === 0xffd8) return jpegSize(head);
  return undefined;
}

/** Walks a JPEG's segments up to the frame header. */
function jpegSize(head: Buffer): Size {
  for (let at = 2; at + 9 <= head.length; ) {
    const marker = head.readUInt16BE(at);
    if (marker === 0xffff) {
      // Fill bytes before a marker.
      at++;
      continue;
    }
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![4, 8, 12].includes(marker & 15);
    if (isFrame) {
      return { type: "JPEG", height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) };
    }
    if (marker < 0xff01) break;
    at += 2 + Math.max(2, head.readUInt16BE(at + 2));
  }
  return { type: "JPEG", width: 0, height: 0 };
}

function webpSize(head: Buffer): Size {
  const type = "WebP";
  switch (head.toString("latin1", 12, 16)) {
    case "VP8X":
      return { type, width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
    case "VP8L": {
      const bits = head.readUInt32LE(21);
      return { type, width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    default:
      return {
        type,
        width: head.readUInt16LE(26) & 0x3fff,
        height: head.readUInt16LE(28) & 0x3fff,
      };
  }
}

/** Tokens of an image: one for each patch of 32 pixels, at most 1,536; those of a small one where nothing is known. */
export function imageTokens({ width, height }: Look, detail: unknown): number {
  const patches = Math.ceil(width / 32) * Math.ceil(height / 32);
  const most = detail === "low" ? 256 : 1536;
  return patches === 0 ? 64 : Math.min(patches, most);
}
