// Says what a meter of media is, and lets bytes pass through one. `mp3-meter.ts` and `mp4-meter.ts` are the meters.

/** The measured facts of a video or of audio. */
export interface MediaFacts {
  /** 0 for audio. */
  width: number;
  height: number;
  durationSeconds: number;
}

/** Measures media as its bytes pass, so that they need not stay in memory. */
export interface Meter {
  /** Takes the next bytes. Throws a `failed` GenerationError as soon as they cannot be the expected media. */
  push(chunk: Uint8Array): void;
  /** Called after the last byte. Throws the same error where something is missing. */
  end(): MediaFacts;
}

/** Passes the bytes on. Throws the meter's error before the end, so that a store that reads them stores nothing. */
export async function* metered(
  chunks: AsyncIterable<Uint8Array>,
  meter: Meter,
  done: (facts: MediaFacts) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    meter.push(chunk);
    yield chunk;
  }
  done(meter.end());
}

/** Seconds with their milliseconds. */
export function roundedSeconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
