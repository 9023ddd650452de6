// Reads the head of one frame of an MP3. upstreams/media/mp3-meter.ts adds up a whole MP3.

/** A frame of layer III. */
export interface Mp3Frame {
  bytes: number;
  seconds: number;
  /** The place of the name in a descriptive frame, from the frame's start. */
  factsAt: number;
}

/** Kilobits a second by their number in the header, for MPEG-1 and for MPEG-2 and 2.5. */
const bitratesOne = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const bitratesTwo = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
/** Samples a second of MPEG-1. MPEG-2 has half of them and MPEG-2.5 a quarter. */
const sampleRates = [44_100, 48_000, 32_000];

/** The frame whose header is at a place, or undefined. Free formats count as none, because no service sends them. */
export function mp3FrameAt(bytes: Buffer, at: number): Mp3Frame | undefined {
  if (bytes.length < at + 4) return undefined;
  const header = bytes.readUInt32BE(at);
  const version = (header >>> 19) & 3;
  const isLayerThree = ((header >>> 17) & 3) === 1;
  if (header >>> 21 !== 0x7ff || version === 1 || !isLayerThree) return undefined;
  const isOne = version === 3;
  const kilobits = (isOne ? bitratesOne : bitratesTwo)[(header >>> 12) & 15];
  const base = sampleRates[(header >>> 10) & 3];
  if (!kilobits || base === undefined) return undefined;
  const rate = base / (isOne ? 1 : version === 2 ? 2 : 4);
  const samples = isOne ? 1152 : 576;
  const padding = (header >>> 9) & 1;
  const isMono = ((header >>> 6) & 3) === 3;
  const sideBytes = isOne ? (isMono ? 17 : 32) : isMono ? 9 : 17;
  return {
    bytes: Math.floor(((samples / 8) * kilobits * 1000) / rate) + padding,
    seconds: samples / rate,
    factsAt: 4 + sideBytes,
  };
}

/** Is it a frame that states the length of the audio, and has none itself? */
export function isFrameOfFacts(bytes: Buffer, at: number, frame: Mp3Frame): boolean {
  const name = bytes.toString("latin1", at + frame.factsAt, at + frame.factsAt + 4);
  const other = bytes.toString("latin1", at + 36, at + 40);
  return name === "Xing" || name === "Info" || other === "VBRI";
}
