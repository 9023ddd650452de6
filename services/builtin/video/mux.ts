// Joins the frames and the audio of a video in an MP4. `video.ts` calls it last.

import { registerAacEncoder } from "@mediabunny/aac-encoder";
import {
  AudioSample,
  AudioSampleSource,
  BufferSource,
  BufferTarget,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  MP4,
  Mp4OutputFormat,
  Output,
} from "mediabunny";
import type { Checkpoint } from "../worker.ts";
import { SOUND_RATE } from "./soundtrack.ts";

/** The parts of the file beside the frames. */
type MuxPlan = {
  /** An MP4 with the H.264 stream alone. */
  readonly stream: Uint8Array;
  readonly framesPerSecond: number;
  readonly durationSeconds: number;
  /** Samples of each channel: none, one or two. */
  readonly sound: readonly Float32Array[];
  readonly checkpoint: Checkpoint;
};

const MONO_BITS_PER_SECOND = 96_000;
const STEREO_BITS_PER_SECOND = 128_000;
/** Samples of an AAC frame. The encoder puts one more frame before the first. */
const AAC_FRAME = 1024;

/** The form of the frames' planes: HD colours in the range of television. */
const COLOUR_SPACE = {
  primaries: "bt709",
  transfer: "bt709",
  matrix: "bt709",
  fullRange: false,
} as const;

/**
 * Joins frames and audio in an MP4 that plays while it loads, because its index comes first. Equal input gives equal bytes, so the file
 * holds no time.
 */
export async function mux(plan: MuxPlan): Promise<Uint8Array> {
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: "in-memory" }), target });
  const pictures = new EncodedVideoPacketSource("avc");
  output.addVideoTrack(pictures, { frameRate: plan.framesPerSecond });
  const sound = plan.sound.length > 0 ? createSoundSource(plan.sound.length) : undefined;
  if (sound !== undefined) output.addAudioTrack(sound);
  try {
    await output.start();
    await addPictures(pictures, plan);
    if (sound !== undefined) await addSound(sound, plan);
    await output.finalize();
  } catch (error) {
    // Without this the thread of the audio encoder would stay alive.
    await output.cancel();
    throw error;
  }
  if (target.buffer === null) throw new Error("the file was not finished");
  const bytes = Buffer.from(target.buffer);
  clearTimes(bytes);
  return bytes;
}

/** Boxes that begin with a version, flags, and the times of creation and change, 4 bytes each. */
const TIMED = ["mvhd", "tkhd", "mdhd"];

/** Sets the times of creation and change to zero ("unknown"). They are in the index, which comes before the media. */
function clearTimes(file: Buffer): void {
  const index = file.subarray(0, file.indexOf("mdat"));
  for (const type of TIMED) {
    for (let at = index.indexOf(type); at >= 0; at = index.indexOf(type, at + 1)) {
      index.fill(0, at + 8, at + 16);
    }
  }
}

async function addPictures(target: EncodedVideoPacketSource, plan: MuxPlan): Promise<void> {
  using input = new Input({ source: new BufferSource(plan.stream), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  const decoderConfig = await track?.getDecoderConfig();
  if (!track || !decoderConfig) throw new Error("the encoder gave no video track");
  const meta = { decoderConfig: { ...decoderConfig, colorSpace: COLOUR_SPACE } };
  let index = 0;
  for await (const packet of new EncodedPacketSink(track).packets()) {
    const timestamp = index / plan.framesPerSecond;
    // The encoder's file does not show which frames need no other. Without that, a player would begin in the middle of others.
    const type = standsAlone(packet.data) ? "key" : "delta";
    const timed = packet.clone({ type, timestamp, duration: 1 / plan.framesPerSecond });
    await target.add(timed, index === 0 ? meta : undefined);
    index++;
  }
  target.close();
}

/** NAL unit type of a slice of a frame that needs no other (ITU-T H.264, table 7-1). */
const IDR_SLICE = 5;
/** Each NAL unit comes behind its length, which has this many bytes. */
const LENGTH_BYTES = 4;

function standsAlone(sample: Uint8Array): boolean {
  const view = new DataView(sample.buffer, sample.byteOffset, sample.byteLength);
  for (let at = 0; at + LENGTH_BYTES < sample.byteLength; ) {
    if ((view.getUint8(at + LENGTH_BYTES) & 0x1f) === IDR_SLICE) return true;
    at += LENGTH_BYTES + view.getUint32(at);
  }
  return false;
}

function createSoundSource(channels: number): AudioSampleSource {
  registerAacEncoder();
  const bitrate = channels === 1 ? MONO_BITS_PER_SECOND : STEREO_BITS_PER_SECOND;
  return new AudioSampleSource({ codec: "aac", bitrate });
}

async function addSound(source: AudioSampleSource, plan: MuxPlan): Promise<void> {
  const { sound, durationSeconds, checkpoint } = plan;
  // Whole frames that, with the one before them, end no later than the video.
  const frames = Math.floor((durationSeconds * SOUND_RATE) / AAC_FRAME) - 1;
  const total = Math.max(1, frames) * AAC_FRAME;
  const chunk = AAC_FRAME * 40;
  for (let from = 0; from < total; from += chunk) {
    checkpoint();
    const count = Math.min(chunk, total - from);
    const data = new Float32Array(count * sound.length);
    for (const [index, channel] of sound.entries()) {
      data.set(channel.subarray(from, from + count), index * count);
    }
    using sample = new AudioSample({
      data,
      format: "f32-planar",
      numberOfChannels: sound.length,
      sampleRate: SOUND_RATE,
      timestamp: from / SOUND_RATE,
    });
    await source.add(sample);
  }
  source.close();
}
