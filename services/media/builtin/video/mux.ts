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
import type { Stereo } from "../audio/dsp.ts";
import type { Checkpoint } from "../cancel.ts";
import { clearTimes } from "./boxes.ts";
import { SOUND_RATE } from "./soundtrack.ts";

/** What goes into the file beside the pictures. */
export type MuxPlan = {
  /** An MP4 with the H.264 stream alone. */
  readonly stream: Uint8Array;
  readonly framesPerSecond: number;
  readonly durationSeconds: number;
  readonly sound: Stereo | undefined;
  readonly channels: 1 | 2;
  readonly checkpoint: Checkpoint;
};

const SOUND_BITS_PER_SECOND = { 1: 96_000, 2: 128_000 } as const;
/** An AAC frame holds so many samples; the encoder puts one more frame before the first. */
const AAC_FRAME = 1024;

/** What the pictures' planes hold: HD colours in the range of television. */
const COLOUR_SPACE = {
  primaries: "bt709",
  transfer: "bt709",
  matrix: "bt709",
  fullRange: false,
} as const;

/**
 * Joins pictures and sound in an MP4 that plays while it loads: its index comes first. Equal input
 * gives equal bytes, so the file bears no time.
 */
export async function mux(plan: MuxPlan): Promise<Uint8Array> {
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: "in-memory" }), target });
  const pictures = new EncodedVideoPacketSource("avc");
  output.addVideoTrack(pictures, { frameRate: plan.framesPerSecond });
  const sound = plan.sound === undefined ? undefined : createSoundSource(plan.channels);
  if (sound !== undefined) output.addAudioTrack(sound);
  try {
    await output.start();
    await addPictures(pictures, plan);
    if (sound !== undefined && plan.sound !== undefined) await addSound(sound, plan.sound, plan);
    await output.finalize();
  } catch (error) {
    // Without this the thread of the sound encoder would live on.
    await output.cancel();
    throw error;
  }
  if (target.buffer === null) throw new Error("the file was not finished");
  const bytes = new Uint8Array(target.buffer);
  clearTimes(bytes);
  return bytes;
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
    // The encoder's file does not say which pictures stand alone; without, a player would jump into the middle of others.
    const type = standsAlone(packet.data) ? "key" : "delta";
    const timed = packet.clone({ type, timestamp, duration: 1 / plan.framesPerSecond });
    await target.add(timed, index === 0 ? meta : undefined);
    index++;
  }
  target.close();
}

/** NAL unit type of a slice of a picture that needs no other (ITU-T H.264, table 7-1). */
const IDR_SLICE = 5;
/** Each NAL unit comes after its length in so many bytes. */
const LENGTH_BYTES = 4;

function standsAlone(sample: Uint8Array): boolean {
  const view = new DataView(sample.buffer, sample.byteOffset, sample.byteLength);
  for (let at = 0; at + LENGTH_BYTES < sample.byteLength; ) {
    if ((view.getUint8(at + LENGTH_BYTES) & 0x1f) === IDR_SLICE) return true;
    at += LENGTH_BYTES + view.getUint32(at);
  }
  return false;
}

function createSoundSource(channels: 1 | 2): AudioSampleSource {
  registerAacEncoder();
  return new AudioSampleSource({ codec: "aac", bitrate: SOUND_BITS_PER_SECOND[channels] });
}

async function addSound(source: AudioSampleSource, sound: Stereo, plan: MuxPlan): Promise<void> {
  const { channels, durationSeconds, checkpoint } = plan;
  // Whole frames that, with the one before them, end no later than the pictures.
  const frames = Math.floor((durationSeconds * SOUND_RATE) / AAC_FRAME) - 1;
  const total = Math.max(1, frames) * AAC_FRAME;
  const chunk = AAC_FRAME * 40;
  for (let from = 0; from < total; from += chunk) {
    checkpoint();
    const count = Math.min(chunk, total - from);
    const data = new Float32Array(count * channels);
    for (let i = 0; i < count; i++) {
      const left = sound.left[from + i] ?? 0;
      const right = sound.right[from + i] ?? 0;
      if (channels === 1) data[i] = (left + right) / 2;
      else {
        data[i * 2] = left;
        data[i * 2 + 1] = right;
      }
    }
    using sample = new AudioSample({
      data,
      format: "f32",
      numberOfChannels: channels,
      sampleRate: SOUND_RATE,
      timestamp: from / SOUND_RATE,
    });
    await source.add(sample);
  }
  source.close();
}
