/** What a video or a sound is found to be. */
export interface MediaFacts {
  /** 0 for sound. */
  width: number;
  height: number;
  durationSeconds: number;
}

/** Looks at media as its bytes pass, so that nothing of it has to stay in memory. */
export interface Meter {
  /** The next bytes. Throws a `failed` GenerationError as soon as they cannot be what they should be. */
  push(chunk: Uint8Array): void;
  /** After the last byte. Throws likewise where something is missing. */
  end(): MediaFacts;
}

/** Passes the bytes on. Throws what the meter throws: before the end, so that a store that reads them stores nothing. */
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
