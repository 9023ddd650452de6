// Decodes PNG in a decoder process, row by row, and keeps no pixel. docs/decisions/images.md says why libpng does not do it.

import { pipeline } from "node:stream/promises";
import { crc32, createInflate } from "node:zlib";
import { gatheredBytes, inflatedChunkBytes } from "./limits.ts";
import { type DecodedImage, ImageError } from "./protocol.ts";

/** A chunk of a PNG. */
type Chunk = { readonly type: string; readonly data: Uint8Array; readonly isIntact: boolean };

/** The first chunk of a PNG. */
type Header = {
  readonly width: number;
  readonly height: number;
  readonly bitsPerPixel: number;
  readonly isInterlaced: boolean;
  readonly colourType: number;
};

/** Samples a pixel and the depths that are allowed, by colour type. */
const colourTypes: ReadonlyMap<number, { samples: number; depths: readonly number[] }> = new Map([
  [0, { samples: 1, depths: [1, 2, 4, 8, 16] }],
  [2, { samples: 3, depths: [8, 16] }],
  [3, { samples: 1, depths: [1, 2, 4, 8] }],
  [4, { samples: 2, depths: [8, 16] }],
  [6, { samples: 4, depths: [8, 16] }],
]);
const paletteType = 3;
const maxPaletteBytes = 3 * 256;
/** Letters. The case of the third one shows that this is no type of a later version. */
const chunkType = /^[A-Za-z]{2}[A-Z][A-Za-z]$/;

/** The start of each pass of an interlaced image, and its steps: x, y, dx, dy. */
const adam7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
const onePass = [[0, 0, 1, 1]] as const;

/** The largest of the five filters of a row. */
const lastFilter = 4;
/** The EXIF tag for the way in which a viewer turns the image. */
const orientationTag = 0x0112;

/**
 * Decodes a PNG to its last pixel, in the memory that its rows need: no pixel is kept. A wrong pixel has a wrong chunk, palette,
 * compressed data or filter of its row. Undoing the filters cannot fail. Text, profiles and everything else that no pixel needs is
 * passed over, and not unpacked. Refuses each image that libpng refuses, so that no image accepted here is broken for an upstream.
 * Throws `ImageError`.
 */
export async function decodePng(bytes: Uint8Array): Promise<DecodedImage> {
  const chunks = readChunks(bytes);
  const header = readHeader(chunks.next().value);
  let orientation = 1;
  let hasPalette = false;
  for (const chunk of chunks) {
    if (!chunkType.test(chunk.type)) throw new ImageError("corrupt");
    if (isCritical(chunk) && !chunk.isIntact) throw new ImageError("corrupt");
    if (chunk.type === "IDAT") {
      if (header.colourType === paletteType && !hasPalette) throw new ImageError("corrupt");
      await readRows(dataFrom(chunk, chunks), header);
      return { format: "png", ...turned(header, orientation), frames: 1, orientation };
    }
    if (chunk.type === "PLTE") {
      checkPalette(chunk.data, header, hasPalette);
      hasPalette = true;
    } else if (chunk.type === "eXIf" && chunk.isIntact)
      orientation = readOrientation(chunk.data) ?? 1;
    // A chunk that a reader must know, and no reader knows.
    else if (isCritical(chunk)) throw new ImageError("corrupt");
  }
  throw new ImageError("corrupt");
}

/** A palette has three bytes a colour, and comes once. An image that does not need it may have any palette, except an empty one. */
function checkPalette({ length }: Uint8Array, { colourType }: Header, isSecond: boolean): void {
  const isSound = length > 0 && length <= maxPaletteBytes && length % 3 === 0 && !isSecond;
  if (colourType === paletteType ? !isSound : length === 0) throw new ImageError("corrupt");
}

function turned({ width, height }: Header, orientation: number) {
  return orientation >= 5 ? { width: height, height: width } : { width, height };
}

function* readChunks(bytes: Uint8Array): Generator<Chunk, undefined> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 8; at + 12 <= bytes.length; ) {
    const end = at + 8 + view.getUint32(at);
    if (end + 4 > bytes.length) return;
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const isIntact = crc32(bytes.subarray(at + 4, end)) === view.getUint32(end);
    yield { type, data: bytes.subarray(at + 8, end), isIntact };
    at = end + 4;
  }
}

/** The case of the type's first letter shows it. */
function isCritical({ type }: Chunk): boolean {
  return (type.charCodeAt(0) & 0x20) === 0;
}

function readHeader(chunk: Chunk | undefined): Header {
  if (chunk?.type !== "IHDR" || chunk.data.length !== 13 || !chunk.isIntact) {
    throw new ImageError("corrupt");
  }
  const view = new DataView(chunk.data.buffer, chunk.data.byteOffset, 13);
  const [width, height] = [view.getUint32(0), view.getUint32(4)];
  const [depth, colourType, compression, filter, interlace] = chunk.data.subarray(8);
  const colours = colourTypes.get(colourType ?? -1);
  const isKnown = compression === 0 && filter === 0 && (interlace === 0 || interlace === 1);
  if (!colours?.depths.includes(depth ?? 0) || !isKnown || width === 0 || height === 0) {
    throw new ImageError("corrupt");
  }
  return {
    width,
    height,
    bitsPerPixel: colours.samples * (depth ?? 0),
    isInterlaced: interlace === 1,
    colourType: colourType ?? 0,
  };
}

/** Rows of each pass that has any, and the bytes of a row, with the byte that names its filter. */
function passesOf({ width, height, bitsPerPixel, isInterlaced }: Header) {
  return (isInterlaced ? adam7 : onePass)
    .map(([x, y, dx, dy]) => ({
      columns: Math.ceil((width - x) / dx),
      rows: Math.ceil((height - y) / dy),
    }))
    .filter(({ columns, rows }) => columns > 0 && rows > 0)
    .map(({ columns, rows }) => ({ rows, length: 1 + Math.ceil((columns * bitsPerPixel) / 8) }));
}

/** The rows that came: not all, all, or all and further bytes behind them. */
type Rows = "some" | "all" | "more";

/** Checks unpacked bytes, piece after piece. Throws at an unknown filter. */
function createRowReader(header: Header): (unpacked: Uint8Array) => Rows {
  const passes = passesOf(header).values();
  let pass = passes.next().value;
  let row = 0;
  /** Bytes of the row that are still to come. 0: the next row begins. */
  let left = 0;
  return (unpacked) => {
    let at = 0;
    while (pass && at < unpacked.length) {
      if (left === 0) {
        if ((unpacked[at] ?? 0) > lastFilter) throw new ImageError("corrupt");
        left = pass.length;
      }
      const step = Math.min(left, unpacked.length - at);
      at += step;
      left -= step;
      if (left > 0 || ++row < pass.rows) continue;
      pass = passes.next().value;
      row = 0;
    }
    if (pass) return "some";
    return at < unpacked.length ? "more" : "all";
  };
}

/** Unpacks to the end of the data, whose checksum must be right, or to the bytes behind the last row. */
async function readRows(data: Iterable<Uint8Array>, header: Header): Promise<void> {
  const read = createRowReader(header);
  let rows = "some" as Rows;
  let isSound = false;
  try {
    await pipeline(
      data,
      createInflate({ chunkSize: inflatedChunkBytes }),
      async (unpacked: AsyncIterable<Uint8Array>) => {
        for await (const piece of unpacked) {
          rows = read(piece);
          if (rows === "more") return;
        }
      },
    );
    isSound = true;
  } catch {
    // The data is damaged, or the pipeline was left early because there is more data than rows.
  }
  const isWhole = rows === "more" || (rows === "all" && isSound);
  if (!isWhole) throw new ImageError("corrupt");
}

/**
 * The compressed data, which is in neighbouring chunks that may be cut anywhere. It is gathered, so that chunks of one byte do not cost
 * a call each.
 */
function* dataFrom(first: Chunk, rest: Iterator<Chunk>): Generator<Uint8Array> {
  let gathered = new Uint8Array(gatheredBytes);
  let filled = 0;
  const take = () => {
    const data = gathered.subarray(0, filled);
    // The reader still uses the buffer that was handed out.
    gathered = new Uint8Array(gatheredBytes);
    filled = 0;
    return data;
  };
  let chunk: Chunk | undefined = first;
  while (chunk?.type === "IDAT") {
    if (!chunk.isIntact) throw new ImageError("corrupt");
    for (let at = 0; at < chunk.data.length; ) {
      const part = chunk.data.subarray(at, at + gatheredBytes - filled);
      gathered.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled === gatheredBytes) yield take();
    }
    chunk = rest.next().value;
  }
  if (filled > 0) yield take();
}

/** The image's orientation by its EXIF, a small TIFF. Undefined where that holds no valid one. */
function readOrientation(exif: Uint8Array): number | undefined {
  if (exif.length < 8) return undefined;
  const view = new DataView(exif.buffer, exif.byteOffset, exif.byteLength);
  const order = view.getUint16(0);
  if (order !== 0x4949 && order !== 0x4d4d) return undefined;
  const isLittle = order === 0x4949;
  const first = view.getUint32(4, isLittle);
  if (first + 2 > exif.length) return undefined;
  const entries = view.getUint16(first, isLittle);
  for (let at = first + 2; at + 12 <= exif.length && at < first + 2 + entries * 12; at += 12) {
    if (view.getUint16(at, isLittle) !== orientationTag) continue;
    const value = view.getUint16(at + 8, isLittle);
    return value >= 1 && value <= 8 ? value : undefined;
  }
  return undefined;
}
