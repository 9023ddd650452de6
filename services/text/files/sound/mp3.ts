import { hasFramesOfCodec } from "#kit/sound/frames.ts";
import { endOfId3 } from "#kit/sound/id3.ts";
import { isFrameOfFacts, type Mp3Frame, mp3FrameAt } from "#kit/sound/mp3-frame.ts";
import type { TakenSound } from "./length.ts";
import { isOtherThanMp3 } from "./other-forms.ts";

/** Bytes of ID3v1, which stands at the end, or where two files were put together. */
const id3v1Bytes = 128;
/** Bytes of the head of an APE tag, and of its foot. */
const apeHeadBytes = 32;

/**
 * Takes an MP3: the sum of its frames, each at its own rate. Beside frames and tags only zeros may stand there: of
 * anything else a decoder looks for the next frame by itself. A last frame may be cut short. What goes up is
 * the frames alone, with one of facts that is written anew. Undefined where it is none.
 */
export function takeMp3(bytes: Buffer<ArrayBuffer>): TakenSound | undefined {
  let [at, frames, seconds, to] = [0, 0, 0, 0];
  let facts: Mp3Facts | undefined;
  while (at < bytes.length) {
    const frame = mp3FrameAt(bytes, at);
    if (frame) {
      // Only the first may say how long the sound is, and sound of nothing: decoders play all others.
      const end = Math.min(bytes.length, at + frame.bytes);
      if (frames === 0 && isFrameOfFacts(bytes, at, frame)) {
        facts = factsOf(bytes.subarray(at, end), frame);
        to = facts ? end - at : 0;
      } else {
        seconds += frame.seconds;
        bytes.copyWithin(to, at, end);
        to += end - at;
      }
      frames++;
      at = end;
      continue;
    }
    const next = bytes[at] === 0 ? at + 1 : endOfTag(bytes, at);
    if (next === at) {
      // Fewer bytes than a head.
      if (bytes.length - at < 4 && frames > 0) break;
      return undefined;
    }
    // A decoder skips an ID3 tag before the first frame; in any other it finds what looks like frames, of any codec.
    const isId3 = bytes.toString("latin1", at, at + 3) === "ID3";
    const tag = bytes.subarray(at, next);
    if ((frames > 0 || !isId3) && hasFramesOfCodec(tag)) return undefined;
    at = next;
  }
  if (frames < 2) return undefined;
  if (facts) bytes.set(frameOf(facts, frames - 1, to));
  const whole = bytes.subarray(0, to);
  if (isOtherThanMp3(whole)) return undefined;
  return { seconds, bytes: whole, ending: "mp3" };
}

/** What is kept of the frame that says how long a sound is. */
interface Mp3Facts {
  /** Its head, and how long it is. */
  head: number;
  bytes: number;
  factsAt: number;
  /** Samples that are not played at the start and at the end, in twelve bits each. */
  delays: number;
}

/** Bytes of its facts: how many frames and bytes there are, a table of places, a rank; then who encoded, and the delays. */
const factBytes = 4 + 4 + 4 + 4 + 100 + 4;
const [encoderBytes, delaysAt] = [36, 21];

/** Undefined where it is in no known form, or short. */
function factsOf(bytes: Buffer, frame: Mp3Frame): Mp3Facts | undefined {
  const { factsAt } = frame;
  const name = bytes.toString("latin1", factsAt, factsAt + 4);
  const isKnown = name === "Xing" || name === "Info";
  if (!isKnown || bytes.length < factsAt + factBytes + encoderBytes) return undefined;
  const flags = bytes.readUInt32BE(factsAt + 4);
  // Each of them may be left out.
  const parts = [4, 4, 100, 4].map((size, bit) => ((flags >>> bit) & 1) * size);
  const at = parts.reduce((sum, size) => sum + size, factsAt + 8);
  const delays = bytes.readUIntBE(at + delaysAt, 3);
  return { head: bytes.readUInt32BE(0), bytes: bytes.length, factsAt, delays };
}

/** A frame of facts with so many frames behind it, and so many bytes in all. */
function frameOf({ head, bytes, factsAt, delays }: Mp3Facts, frames: number, all: number): Buffer {
  const frame = Buffer.alloc(bytes);
  // Without a checksum, which would be another one now.
  frame.writeUInt32BE((head | 0x10000) >>> 0);
  frame.write("Info", factsAt);
  frame.writeUInt32BE(3, factsAt + 4);
  frame.writeUInt32BE(frames, factsAt + 8);
  frame.writeUInt32BE(all, factsAt + 12);
  if (delays === 0) return frame;
  // Decoders believe the delays of encoders that they know.
  frame.write("LAME", factsAt + 16);
  frame.writeUIntBE(delays, factsAt + 16 + delaysAt, 3);
  return frame;
}

/** Where the tag at a place ends; the place itself where there is none. */
function endOfTag(bytes: Buffer, at: number): number {
  const name = bytes.toString("latin1", at, at + 8);
  if (name.startsWith("TAG")) return at + id3v1Bytes;
  if (name === "APETAGEX" && at + apeHeadBytes <= bytes.length) {
    const isFoot = (bytes.readUInt32LE(at + 20) & 0x20000000) === 0;
    // What stands in it counts the foot, and not the head.
    return at + apeHeadBytes + (isFoot ? 0 : bytes.readUInt32LE(at + 12));
  }
  return endOfId3(bytes, at);
}
