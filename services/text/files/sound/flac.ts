import { flacFactBytes, type MeasuredFlac, measureFlac } from "#kit/sound/flac.ts";
import type { TakenSound } from "./length.ts";

/** Bytes of a head with nothing but the block that says what the stream is. */
const headBytes = 8 + flacFactBytes;

/** Takes a FLAC. What goes up is a head of ours and all behind the file's own. Undefined where it is none. */
export function takeFlac(bytes: Buffer<ArrayBuffer>): TakenSound | undefined {
  const measured = measureFlac(bytes);
  if (!measured) return undefined;
  const { seconds, end } = measured;
  const from = end - headBytes;
  bytes.set(headOf(measured), from);
  return { seconds, bytes: bytes.subarray(from), ending: "flac" };
}

/** A head of ours: sizes of blocks, rate, channels and width as the file says them, and its length where that is no lie. */
function headOf({ facts, rate, seconds }: MeasuredFlac): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write("fLaC");
  head.writeUInt32BE(0x80000000 + flacFactBytes, 4);
  facts.copy(head, 8, 0, 4);
  facts.copy(head, 18, 10, 14);
  // 36 bits, of which the upper four share a byte.
  const samples = (facts.readUInt8(13) & 15) * 2 ** 32 + facts.readUInt32BE(14);
  const isSaid = samples <= Math.ceil(seconds * rate);
  if (isSaid) facts.copy(head, 22, 14, 18);
  else head[21] = (head[21] ?? 0) & 0xf0;
  return head;
}
