import { failed } from "./faults.ts";

/** A box within its parent, without its header. */
export interface Box {
  type: string;
  body: Buffer;
}

/** The boxes in a body, in their order. Throws a `failed` GenerationError where one does not fit. */
export function* boxesIn(body: Buffer): Generator<Box> {
  for (let at = 0; at < body.length; ) {
    const head = headAt(body, at);
    if (!head || head.size < head.headBytes || at + head.size > body.length) {
      throw failed("the video's index is damaged");
    }
    yield { type: head.type, body: body.subarray(at + head.headBytes, at + head.size) };
    at += head.size;
  }
}

/** The first box of a type, down a path. */
export function boxAt(body: Buffer, ...path: string[]): Buffer | undefined {
  let found: Buffer | undefined = body;
  for (const type of path) {
    found = found && boxesIn(found).find((box) => box.type === type)?.body;
  }
  return found;
}

/** Type and size of the box that begins at a place; undefined where its header is not whole yet. */
export function headAt(
  bytes: Buffer,
  at: number,
): { type: string; size: number; headBytes: number } | undefined {
  if (bytes.length < at + 8) return undefined;
  const size = bytes.readUInt32BE(at);
  const type = bytes.toString("latin1", at + 4, at + 8);
  if (size !== 1) return { type, size, headBytes: 8 };
  if (bytes.length < at + 16) return undefined;
  return { type, size: Number(bytes.readBigUInt64BE(at + 8)), headBytes: 16 };
}

/** An unsigned number of 4 bytes; throws a `failed` GenerationError where the box is too short for it. */
export function uint32(body: Buffer, at: number): number {
  if (body.length < at + 4) throw failed("the video's index is damaged");
  return body.readUInt32BE(at);
}

/** An unsigned number of 4 bytes, or of 8 where the box is of version 1. */
export function uintOfVersion(body: Buffer, at: number): number {
  if (body[0] !== 1) return uint32(body, at);
  return uint32(body, at) * 2 ** 32 + uint32(body, at + 4);
}
