// Verifies and stores one output, from bytes or a stream that its caller has. An image is decoded before it is stored. Video and music
// are measured as they pass on, by `mp4-meter.ts` and `mp3-meter.ts`. `fetch-output.ts` brings the outputs that an answer names or
// holds. For `speak.ts` speech is measured here, too, and the media service stores it.

import { Readable } from "node:stream";
import { ownImages, type VerifiedImage } from "#kit/images/index.ts";
import type { SoundFormat } from "#kit/sound/formats.ts";
import { secondsOf } from "#kit/sound/seconds.ts";
import type { DriverContext } from "./context.ts";
import { failed, isWorthRepeating, unknown } from "./faults.ts";
import { generateLimits, generateTries } from "./limits.ts";
import { type MediaFacts, type Meter, metered, roundedSeconds } from "./meter.ts";
import { createMp3Meter } from "./mp3-meter.ts";
import { createMp4Meter } from "./mp4-meter.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask } from "./port.ts";
import { withTries } from "./retries.ts";

/** Decodes an image to its last pixel. Throws `ImageError`, or the signal's reason. */
async function verifyImage(
  context: DriverContext,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<VerifiedImage> {
  const rules = {
    accept: ["png", "jpeg", "webp"] as const,
    maxBytes: generateLimits.imageBytes,
    maxPixels: generateLimits.imagePixels,
  };
  const tries = { most: generateTries.start, mayRepeat: isWorthRepeating, signal };
  const owner = { accountId: ownImages, signal };
  return withTries(context, tries, () =>
    orAborted(signal, context.verifier.verify(bytes, rules, owner)),
  );
}

/** Verifies an image and stores it. Throws `ImageError`, `unknown` where the store failed, or the signal's reason. */
export async function storeImage(
  context: DriverContext,
  task: GenerationTask,
  bytes: Uint8Array,
): Promise<GeneratedOutput> {
  const { width, height, mimeType } = await verifyImage(context, bytes, task.signal);
  const stored = await storing(task, () => task.store(bytes, mimeType));
  return { ...stored, mimeType, width, height, durationSeconds: 0 };
}

/** Media that is stored as it comes. */
export interface StreamedOutput {
  mimeType: "video/mp4" | "audio/mpeg";
  createMeter: () => Meter;
  /** A larger output is not downloaded. */
  maxBytes: number;
}

/** The video of a task that asked for this many seconds. */
export function videoOutput(askedSeconds: number): StreamedOutput {
  return {
    mimeType: "video/mp4",
    createMeter: () => createMp4Meter(askedSeconds),
    maxBytes: generateLimits.videoBytes,
  };
}

/** Music. */
export const musicOutput: StreamedOutput = {
  mimeType: "audio/mpeg",
  createMeter: createMp3Meter,
  maxBytes: generateLimits.musicBytes,
};

/** The video or the music that a request asks for. */
export function streamedOutput(
  request: Extract<GenerationRequest, { kind: "video" | "music" }>,
): StreamedOutput {
  return request.kind === "video" ? videoOutput(request.durationSeconds) : musicOutput;
}

/**
 * Stores media as its bytes come, and measures them meanwhile. Bytes that fail the measurement break off the storing, so that nothing
 * stays. Rejects with the source's own error, the meter's, or `unknown` where the store failed.
 */
export async function storeStream(
  task: GenerationTask,
  output: StreamedOutput,
  chunks: AsyncIterable<Uint8Array>,
): Promise<GeneratedOutput> {
  let facts: MediaFacts | undefined;
  let broken: { reason: unknown } | undefined;
  async function* source() {
    try {
      yield* metered(chunks, output.createMeter(), (found) => {
        facts = found;
      });
    } catch (reason) {
      // A store may replace the source's error by its own.
      broken = { reason };
      throw reason;
    }
  }
  const readable = Readable.from(source(), { objectMode: false });
  const stored = await storing(task, () => task.store(readable, output.mimeType)).catch((error) => {
    readable.destroy();
    throw broken ? broken.reason : error;
  });
  if (!facts) throw unknown("the output was not read to its end");
  return { ...stored, mimeType: output.mimeType, ...facts };
}

/** Seconds of complete audio in a format. Throws a `failed` GenerationError where the bytes are not of it. */
export function soundSeconds(bytes: Uint8Array, format: SoundFormat): number {
  if (format !== "mp3") {
    const seconds = secondsOf(bytes, format);
    if (seconds === undefined) throw failed(`the bytes are no ${format}`);
    return roundedSeconds(seconds);
  }
  // Measured like music, because that meter accepts more of the data that upstreams write behind the frames.
  const meter = createMp3Meter();
  meter.push(bytes);
  return meter.end().durationSeconds;
}

/** Resolves as the promise does, or rejects at once with the signal's reason. */
async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** An error of our own store is no fault of an output. */
async function storing<T>(task: GenerationTask, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    task.signal.throwIfAborted();
    throw unknown("the output could not be stored", { cause });
  }
}
