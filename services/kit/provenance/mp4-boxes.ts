// Makes room for a manifest in an MP4 as its bytes pass, by moving the offsets in its index. `mark.ts` hashes and writes the
// pieces.

import { joinInTurns, piecesOf, turn } from "#kit/base/in-turns.ts";

/** The type of boxes of C2PA in an MP4. */
export const c2paType = Buffer.from("d8fec3d61b0e483c92975828877ec481", "hex");

/** An MP4 leaves no place for a manifest: its boxes do not fit, or it has offsets of an unknown kind. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
}

/** Bytes of an MP4 on its way, in their order. */
export interface Piece {
  bytes: Buffer;
  /** The type of the box on the outermost level that begins with them. Undefined: it began earlier. */
  begins: string | undefined;
  /** Does the hash of the file cover the box? */
  isHashed: boolean;
}

/** Boxes that are read whole, because they hold offsets from the file's beginning. */
const held: ReadonlySet<string> = new Set(["moov", "moof", "mfra"]);
/** Boxes that a hash of the file does not cover (C2PA 2.1, 18.6). */
const unhashed: ReadonlySet<string> = new Set(["ftyp", "mfra"]);
/** Bytes of a box that is read whole. An index of an hour has 4 MiB. */
const maxHeldBytes = 16 * 1024 * 1024;

const none: Buffer = Buffer.alloc(0);

/** Boxes of an index, and of a file itself, that are gone through: some 30 for each track, and two for each second in fragments. */
export const maxBoxes = 20_000;

/** Offsets in an index: an hour in pieces of one frame has some 300,000. More would take longer than one turn may. */
const maxOffsets = 500_000;

/** A file that has a manifest already. */
export class MarkedError extends Error {
  override readonly name = "MarkedError";
}

/**
 * Passes an MP4 on as it is once `shift` bytes are put behind its first box: with the offsets in its index moved. Throws a
 * {@link LayoutError} where that cannot be done, and a {@link MarkedError} where it has a manifest.
 */
export async function* shifted(
  chunks: AsyncIterable<Buffer>,
  shift: number,
): AsyncGenerator<Piece, void> {
  /** The part of the next box's head that has come. */
  let head: Buffer = none;
  let box: { type: string; leftBytes: number; parts: Buffer[] } | undefined;
  let boxes = 0;
  for await (const chunk of chunks) {
    let rest = head.length > 0 ? Buffer.concat([head, chunk]) : chunk;
    head = none;
    while (rest.length > 0) {
      let begins: string | undefined;
      if (!box) {
        const found = outerHead(rest);
        if (!found) {
          head = rest;
          break;
        }
        if (++boxes > maxBoxes) throw new LayoutError("the file has too many boxes");
        begins = found.type;
        box = { type: found.type, leftBytes: found.size, parts: [] };
      }
      const bytes = rest.subarray(0, Math.min(rest.length, box.leftBytes));
      rest = rest.subarray(bytes.length);
      box.leftBytes -= bytes.length;
      const isHashed = !unhashed.has(box.type);
      if (!held.has(box.type)) yield { bytes, begins, isHashed };
      else {
        box.parts.push(bytes);
        if (box.leftBytes === 0) {
          const whole = await joinInTurns(box.parts);
          moveWithin(whole, shift, { boxes: maxBoxes, offsets: maxOffsets });
          for await (const piece of piecesOf(whole)) {
            const first = piece.byteOffset === whole.byteOffset ? box.type : undefined;
            yield {
              bytes: Buffer.from(piece.buffer, piece.byteOffset, piece.length),
              begins: first,
              isHashed,
            };
            // Its reader hashes or stores the piece, and may not wait for anything meanwhile.
            await turn();
          }
        }
      }
      if (box.leftBytes === 0) box = undefined;
    }
  }
  if (head.length > 0 || (box && box.leftBytes !== Number.POSITIVE_INFINITY)) {
    throw new LayoutError("the file is cut short");
  }
}

/** Type and size of the box on the outermost level that begins. Undefined: not enough of it has come. */
function outerHead(bytes: Buffer): { type: string; size: number } | undefined {
  const found = headAt(bytes, 0);
  if (!found) return undefined;
  const { type, size, headBytes } = found;
  if (size < headBytes || (held.has(type) && size > headBytes + maxHeldBytes)) {
    throw new LayoutError("a box does not fit");
  }
  if (type === "uuid" && size >= headBytes + c2paType.length) {
    if (bytes.length < headBytes + c2paType.length) return undefined;
    if (c2paType.equals(bytes.subarray(headBytes, headBytes + c2paType.length))) {
      throw new MarkedError("the file has a manifest");
    }
  }
  // Its items may lie anywhere in the file.
  if (type === "meta") throw new LayoutError("the file has items");
  return { type, size };
}

/** Type, size and head of the box at a place. A size of 0 reaches to the end. Undefined: not all of the head is there. */
export function headAt(
  bytes: Buffer,
  at: number,
): { type: string; size: number; headBytes: number } | undefined {
  if (bytes.length < at + 8) return undefined;
  const size = bytes.readUInt32BE(at);
  const type = bytes.toString("latin1", at + 4, at + 8);
  if (size === 0) return { type, size: Number.POSITIVE_INFINITY, headBytes: 8 };
  if (size !== 1) return { type, size, headBytes: 8 };
  if (bytes.length < at + 16) return undefined;
  return { type, size: Number(bytes.readBigUInt64BE(at + 8)), headBytes: 16 };
}

/** The boxes on the way to those that hold offsets. */
const ways: ReadonlySet<string> = new Set([
  ...["moov", "trak", "mdia", "minf", "stbl", "moof", "traf", "mfra"],
]);

/** How many more boxes and offsets of an index are gone through. */
interface Left {
  boxes: number;
  offsets: number;
}

/** Moves the offsets from the file's beginning that boxes hold. */
function moveWithin(boxes: Buffer, shift: number, left: Left): void {
  for (let at = 0; at < boxes.length; ) {
    const head = headAt(boxes, at);
    if (left.boxes-- === 0) throw new LayoutError("an index has too many boxes");
    if (!head || head.size < head.headBytes || at + head.size > boxes.length) {
      throw new LayoutError("a box does not fit");
    }
    const body = boxes.subarray(at + head.headBytes, at + head.size);
    if (ways.has(head.type)) moveWithin(body, shift, left);
    const offsets = places[head.type]?.(body);
    if (offsets) moveEach(body, offsets, shift, left);
    at += head.size;
  }
}

/** Where boxes hold such offsets. Undefined: this one holds none. */
const places: Readonly<Record<string, (body: Buffer) => Offsets | undefined>> = {
  stco: (body) => ({ from: 8, count: count(body, 4), stride: 4, long: false }),
  co64: (body) => ({ from: 8, count: count(body, 4), stride: 8, long: true }),
  tfhd(body) {
    // Its first optional field is an offset from the file's beginning.
    const hasOffset = body.length >= 4 && (body.readUInt32BE(0) & 1) !== 0;
    return hasOffset ? { from: 8, count: 1, stride: 8, long: true } : undefined;
  },
  tfra(body) {
    const long = body[0] === 1;
    const sizes = count(body, 8);
    const field = long ? 8 : 4;
    const numbers = 3 + (sizes & 3) + ((sizes >> 2) & 3) + ((sizes >> 4) & 3);
    return { from: 16 + field, count: count(body, 12), stride: 2 * field + numbers, long };
  },
};

function count(body: Buffer, at: number): number {
  if (body.length < at + 4) throw new LayoutError("a box does not fit");
  return body.readUInt32BE(at);
}

interface Offsets {
  from: number;
  count: number;
  /** Bytes from one offset to the next. */
  stride: number;
  /** 8 bytes, not 4. */
  long: boolean;
}

function moveEach(
  body: Buffer,
  { from, count, stride, long }: Offsets,
  shift: number,
  left: Left,
): void {
  left.offsets -= count;
  if (left.offsets < 0) throw new LayoutError("an index has too many offsets");
  const lastEnd = from + (count - 1) * stride + (long ? 8 : 4);
  if (count > 0 && lastEnd > body.length) throw new LayoutError("a box does not fit");
  for (let index = 0, at = from; index < count; index++, at += stride) {
    // The lower half of a long one. No file is so large that the upper half changes.
    const low = long ? at + 4 : at;
    const offset = body.readUInt32BE(low) + shift;
    if (offset > 0xffff_ffff) throw new LayoutError("the file is too large for its offsets");
    body.writeUInt32BE(offset, low);
  }
}
