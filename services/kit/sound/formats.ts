// The names of the formats of speech, with their media types. The edge, the catalog, media and the drivers go by them.

/** Formats of speech by OpenAI's names, each with the media type that OpenAI answers. */
export const soundTypes = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
} as const;

/** A format of speech. */
export type SoundFormat = keyof typeof soundTypes;

/** All of them. */
export const soundFormats = Object.keys(soundTypes) as [SoundFormat, ...SoundFormat[]];

/** Samples a second of audio without a head. OpenAI's `pcm` is 24 kHz, 16 bits, little-endian, one channel. */
export const pcmRate = 24_000;
