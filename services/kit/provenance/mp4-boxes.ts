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

/** Boxes of an index, and of a file's beginning, that are gone through: some 30 for each track, and two for each second in fragments. */
export const maxBoxes = 20_000;

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
          const whole = moved(Buffer.concat(box.parts), shift);
          yield { bytes: whole, begins: box.type, isHashed };
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

/** A copy of an index, with its offsets from the file's beginning moved by `shift`. */
function moved(whole: Buffer, shift: number): Buffer {
  const copy = Buffer.from(whole);
  moveWithin(copy, shift, { boxes: maxBoxes });
  return copy;
}

function moveWithin(boxes: Buffer, shift: number, left: { boxes: number }): void {
  for (let at = 0; at < boxes.length; ) {
    const head = headAt(boxes, at);
    if (left.boxes-- === 0) throw new LayoutError("an index has too many boxes");
    if (!head || head.size < head.headBytes || at + head.size > boxes.length) {
      throw new LayoutError("a box does not fit");
    }
    const body = boxes.subarray(at + head.headBytes, at + head.size);
    if (ways.has(head.type)) moveWithin(body, shift, left);
    else movers[head.type]?.(body, shift);
    at += head.size;
  }
}

const movers: Readonly<Record<string, (body: Buffer, shift: number) => void>> = {
  stco: (body, shift) =>
    moveEach(body, { from: 8, count: count(body, 4), stride: 4, long: false }, shift),
  co64: (body, shift) =>
    moveEach(body, { from: 8, count: count(body, 4), stride: 8, long: true }, shift),
  tfhd(body, shift) {
    // Its first optional field is an offset from the file's beginning.
    const hasOffset = body.length >= 4 && (body.readUInt32BE(0) & 1) !== 0;
    if (hasOffset) moveEach(body, { from: 8, count: 1, stride: 8, long: true }, shift);
  },
  tfra(body, shift) {
    const long = body[0] === 1;
    const sizes = count(body, 8);
    const field = long ? 8 : 4;
    const numbers = 3 + (sizes & 3) + ((sizes >> 2) & 3) + ((sizes >> 4) & 3);
    const entries = { from: 16 + field, count: count(body, 12), stride: 2 * field + numbers, long };
    moveEach(body, entries, shift);
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

function moveEach(body: Buffer, { from, count, stride, long }: Offsets, shift: number): void {
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
