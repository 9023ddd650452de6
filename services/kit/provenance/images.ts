// Finds the manifest in a PNG or JPEG, and says where a new one goes. Marking and reading both use it. `mp4-boxes.ts` does the
// same for MP4.

import { crc32 } from "node:zlib";

/**
 * Chunks of a PNG, and segments and fill bytes of a JPEG, that are gone through. The largest image in chunks of 8 KiB has some 4,000.
 * More would take longer than one turn of the event loop may.
 */
const maxParts = 20_000;

/** How a type of images holds a manifest. */
export interface ImageHolder {
  /** The manifest, whole. Undefined: the image has none, or it is not among these bytes, which may be an image's beginning. */
  find(bytes: Buffer): Buffer | undefined;
  /** Where a new manifest goes: bytes from the beginning. Undefined: the bytes are not such an image, or are in too many parts. */
  place(bytes: Buffer): number | undefined;
  /** A manifest, with all that goes around it. */
  frame(manifest: Buffer): Buffer;
  /** Bytes that go around it. */
  frameBytes: number;
}

/** Bytes before a PNG's first chunk, and of a chunk that hold its length, its type and its sum. */
const png = { signature: 8, length: 4, type: 4, sum: 4 };

/** A PNG holds it in a chunk of its own, behind the header's. */
export const inPng: ImageHolder = {
  find(bytes) {
    return chunksOf(bytes).find(({ type }) => type === "caBX")?.data;
  },
  place(bytes) {
    const [first, ...others] = chunksOf(bytes);
    return first?.type === "IHDR" && others.length < maxParts - 1 ? first.end : undefined;
  },
  frame(manifest) {
    const chunk = Buffer.alloc(png.length + png.type + manifest.length + png.sum);
    chunk.writeUInt32BE(manifest.length);
    chunk.write("caBX", png.length, "latin1");
    manifest.copy(chunk, png.length + png.type);
    const sum = crc32(chunk.subarray(png.length, chunk.length - png.sum));
    chunk.writeUInt32BE(sum, chunk.length - png.sum);
    return chunk;
  },
  frameBytes: png.length + png.type + png.sum,
};

/** The chunks that are there whole. */
function* chunksOf(bytes: Buffer): Generator<{ type: string; data: Buffer; end: number }> {
  let at = png.signature;
  for (let part = 0; part < maxParts && at + png.length + png.type <= bytes.length; part++) {
    const length = bytes.readUInt32BE(at);
    const from = at + png.length + png.type;
    const end = from + length + png.sum;
    if (end > bytes.length) return;
    yield {
      type: bytes.toString("latin1", at + png.length, from),
      data: bytes.subarray(from, from + length),
      end,
    };
    at = end;
  }
}

/** Bytes of a segment's marker and length, and of what a segment with a part of a box has before the box. */
const jpeg = { head: 4, part: 8, box: 8 };
const app11 = 0xeb;

/** A JPEG holds it in segments APP11 (ISO 19566-5, D.2). */
export const inJpeg: ImageHolder = {
  find(bytes) {
    const parts = segmentsOf(bytes)
      .filter(({ marker, body }) => marker === app11 && isManifestPart(body))
      .toArray();
    const [first] = parts;
    if (!first) return undefined;
    // Each segment repeats the head of the box.
    const head = first.body.subarray(jpeg.part, jpeg.part + jpeg.box);
    const number = first.body.readUInt16BE(2);
    const mine = parts.filter(({ body }) => body.readUInt16BE(2) === number);
    return Buffer.concat([head, ...mine.map(({ body }) => body.subarray(jpeg.part + jpeg.box))]);
  },
  place(bytes) {
    if (bytes.readUInt16BE(0) !== 0xffd8) return undefined;
    const segments = [...segmentsOf(bytes)];
    // Readers of JFIF and EXIF want theirs first.
    const others = segments.findIndex(({ marker }) => marker !== 0xe0 && marker !== 0xe1);
    const end = segments[(others < 0 ? segments.length : others) - 1]?.end ?? 2;
    return segments.length < maxParts ? end : undefined;
  },
  frame(manifest) {
    const segment = Buffer.alloc(jpeg.head + jpeg.part + manifest.length);
    segment.writeUInt16BE(0xff00 | app11);
    segment.writeUInt16BE(segment.length - 2, 2);
    segment.write("JP", 4, "latin1");
    // The box's number, and the number of this segment among its segments.
    segment.writeUInt16BE(1, 6);
    segment.writeUInt32BE(1, 8);
    manifest.copy(segment, jpeg.head + jpeg.part);
    return segment;
  },
  frameBytes: jpeg.head + jpeg.part,
};

/** Is it a part of a box with a label? The first part has to be the one whose label is c2pa. */
function isManifestPart(body: Buffer): boolean {
  const isBox =
    body.length >= jpeg.part + jpeg.box &&
    body.toString("latin1", 0, 2) === "JP" &&
    body.toString("latin1", jpeg.part + 4, jpeg.part + jpeg.box) === "jumb";
  if (!isBox || body.readUInt32BE(4) !== 1) return isBox;
  // The first part has the description: its length, its type, and the kind.
  const kind = jpeg.part + jpeg.box + 8;
  return body.toString("latin1", kind, kind + 4) === "c2pa";
}

/** The segments before the image data that are complete. */
function* segmentsOf(bytes: Buffer): Generator<{ marker: number; body: Buffer; end: number }> {
  let at = 2;
  for (let part = 0; part < maxParts && at + jpeg.head <= bytes.length; part++) {
    const marker = bytes[at + 1] ?? 0;
    // The image data begin, or the bytes are no JPEG.
    if (bytes[at] !== 0xff || marker === 0xda || marker === 0xd9) return;
    // Any number of these may come before a marker.
    if (marker === 0xff) {
      at++;
      continue;
    }
    const end = at + 2 + Math.max(2, bytes.readUInt16BE(at + 2));
    if (end > bytes.length) return;
    yield { marker, body: bytes.subarray(at + jpeg.head, end), end };
    at = end;
  }
}
