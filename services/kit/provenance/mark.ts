// Puts a signed manifest into an image or a video that a model made. The manifest itself comes from `manifest.ts`.

import { createHash } from "node:crypto";
import { digestInTurns } from "#kit/base/in-turns.ts";
import { box } from "./boxes.ts";
import { type Cbor, mapOf } from "./cbor.ts";
import { type ImageHolder, inJpeg, inPng } from "./images.ts";
import { type Binding, type Mark, writeManifest } from "./manifest.ts";
import { c2paType, LayoutError, MarkedError, shifted } from "./mp4-boxes.ts";

const holders: Readonly<Record<string, ImageHolder>> = {
  "image/png": inPng,
  "image/jpeg": inJpeg,
};

/** The types of files that get a manifest. */
export const markedTypes: readonly string[] = [...Object.keys(holders), "video/mp4"];

/** Why a file gets no manifest: it has one, or its layout has no place for one. */
export type Unmarked = "has_one" | "layout";

/** The parts of an image with a manifest, in their order. */
export async function markImage(
  bytes: Buffer,
  mimeType: string,
  mark: Mark,
): Promise<readonly Buffer[] | Unmarked> {
  const holder = holders[mimeType];
  const place = holder?.place(bytes);
  if (!holder || place === undefined) return "layout";
  if (holder.find(bytes)) return "has_one";
  // All of the image but its manifest is hashed, so that this is the hash of the image as it came.
  const hash = Buffer.from(await digestInTurns(bytes), "hex");
  const made = ofKnownLength((length) =>
    writeManifest(mark, {
      label: "c2pa.hash.data",
      content: mapOf({
        exclusions: [mapOf({ start: place, length: length + holder.frameBytes })],
        ...{ alg: "sha256", hash, pad: Buffer.alloc(0) },
      }),
    }),
  );
  const frame = holder.frame(await made.sign());
  return [bytes.subarray(0, place), frame, bytes.subarray(place)];
}

/** A manifest that names its own length, which the number's digits may change once. */
function ofKnownLength<T extends { lengthBytes: number }>(make: (lengthBytes: number) => T): T {
  let made = make(0);
  for (let tries = 0; tries < 3; tries++) {
    const again = make(made.lengthBytes);
    if (again.lengthBytes === made.lengthBytes) return again;
    made = again;
  }
  throw new Error("a manifest has no length of its own");
}

/**
 * An MP4 with a manifest behind its first box. `open` reads the MP4 from its beginning, and is called twice: for its hash, and for its
 * bytes.
 */
export async function markMp4(
  open: () => AsyncIterable<Buffer>,
  mark: Mark,
): Promise<AsyncIterable<Buffer> | Unmarked> {
  try {
    const written = (hash: Buffer) => writeManifest(mark, boundTo(hash));
    const { lengthBytes } = written(Buffer.alloc(32));
    const shift = framed(Buffer.alloc(lengthBytes)).length;
    const frame = framed(await written(await hashOf(open(), shift)).sign());
    return withFrame(open(), frame);
  } catch (error) {
    if (error instanceof MarkedError) return "has_one";
    if (error instanceof LayoutError) return "layout";
    throw error;
  }
}

/** The box around a manifest: C2PA's type, version and flags, the purpose, and no place of a further box. */
function framed(manifest: Buffer): Buffer {
  const purpose = Buffer.from("manifest\0", "latin1");
  return box("uuid", c2paType, Buffer.alloc(4), purpose, Buffer.alloc(8), manifest);
}

function boundTo(hash: Buffer): Binding {
  const excluded = (xpath: string, data?: readonly Cbor[]) => mapOf({ xpath, data });
  return {
    label: "c2pa.hash.bmff.v3",
    content: mapOf({
      exclusions: [
        excluded("/uuid", [mapOf({ offset: 8, value: c2paType })]),
        excluded("/ftyp"),
        excluded("/mfra"),
      ],
      alg: "sha256",
      hash,
      name: "jumbf manifest",
    }),
  };
}

/** The hash of the file with its manifest: of each box that is hashed, its place and its bytes (C2PA 2.1, 18.6). */
async function hashOf(chunks: AsyncIterable<Buffer>, shift: number): Promise<Buffer> {
  const hash = createHash("sha256");
  const place = Buffer.alloc(8);
  let [at, boxes] = [0, 0];
  for await (const { bytes, begins, isHashed } of shifted(chunks, shift)) {
    if (begins !== undefined) boxes++;
    if (begins !== undefined && isHashed) {
      place.writeBigUInt64BE(BigInt(at + shift));
      hash.update(place);
    }
    if (isHashed) hash.update(bytes);
    else if (at === 0 && begins !== "ftyp") throw new LayoutError("the bytes are no MP4");
    at += bytes.length;
  }
  if (boxes < 2) throw new LayoutError("the bytes are no MP4");
  return hash.digest();
}

async function* withFrame(
  chunks: AsyncIterable<Buffer>,
  frame: Buffer,
): AsyncGenerator<Buffer, void> {
  let boxes = 0;
  for await (const { bytes, begins } of shifted(chunks, frame.length)) {
    if (begins !== undefined && ++boxes === 2) yield frame;
    yield bytes;
  }
}
