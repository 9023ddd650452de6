// Reads one packet of Opus: how long it is, and whether it begins a stream.

/** Samples a second by which Opus counts its time. */
export const opusRate = 48_000;
/** Samples of a frame, by the lower bits of its configuration: SILK, hybrid, CELT (RFC 6716, section 3.1). */
const silk = [480, 960, 1_920, 2_880];
const hybrid = [480, 960];
const celt = [120, 240, 480, 960];

/** Samples of a packet of Opus, by its first two bytes. */
export function samplesOfOpus(packet: Uint8Array): number {
  const head = packet[0];
  if (head === undefined) return 0;
  const configuration = head >>> 3;
  const code = head & 3;
  const frames = code === 0 ? 1 : code === 3 ? (packet[1] ?? 0) & 63 : 2;
  return frames * samplesOf(configuration);
}

function samplesOf(configuration: number): number {
  if (configuration < 12) return silk[configuration & 3] ?? 0;
  if (configuration < 16) return hybrid[configuration & 1] ?? 0;
  return celt[configuration & 3] ?? 0;
}

/** Bytes of a description before its table of channels. */
const headBytes = 19;

/**
 * Does a stream begin with this packet (RFC 7845, section 5.1), in a known form? That is one or two channels, or up to eight in the
 * order of loudspeakers.
 */
export function isOpusHead(packet: Buffer): boolean {
  if (packet.length < headBytes || packet.toString("latin1", 0, 8) !== "OpusHead") return false;
  const [version = 0, channels = 0, family = 0] = [packet[8], packet[9], packet[18]];
  if (version >>> 4 !== 0 || channels === 0 || family > 1) return false;
  if (channels > (family === 0 ? 2 : 8)) return false;
  return packet.length >= (family === 0 ? headBytes : headBytes + 2 + channels);
}
