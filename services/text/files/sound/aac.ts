import { aacRates } from "#kit/sound/aac.ts";
import { Bits } from "./bits.ts";

/** What AAC says of itself before its first packet. */
export interface AacConfig {
  /** Samples a second, each unit of 1,024. */
  rate: number;
  rateCode: number;
  channels: number;
  /** The same, with nothing behind it. */
  bytes: Buffer;
}

/** Channels by their code; 0 says that they are described in the sound, which is done for none that people speak in. */
const channelsOf = [0, 1, 2, 3, 4, 5, 6, 8];
/** Kinds of AAC: the usual one, and those that add high tones or a second channel to it, at a rate of their own. */
const [lowComplexity, withBands, withStereo] = [2, 5, 29];

/** Reads a description (ISO 14496-3, AudioSpecificConfig); undefined where it is of another kind. */
export function readAacConfig(description: Buffer): AacConfig | undefined {
  const bits = new Bits(description);
  const kind = bits.read(5);
  const rateCode = bits.read(4);
  const channelCode = bits.read(4);
  const isWider = kind === withBands || kind === withStereo;
  const widerCode = isWider ? bits.read(4) : 0;
  const base = isWider ? bits.read(5) : kind;
  // Units of 960 samples, what comes before, and what is added have a bit each.
  const rest = bits.read(3);
  const rate = aacRates[rateCode];
  const channels = channelsOf[channelCode];
  if (bits.isOver || base !== lowComplexity || rest !== 0 || !rate || !channels) return undefined;
  if (isWider && aacRates[widerCode] === undefined) return undefined;
  return { rate, rateCode, channels, bytes: Buffer.from(description.subarray(0, isWider ? 4 : 2)) };
}
