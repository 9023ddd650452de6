/** CRC-8 of each byte, by the polynomial x^8 + x^2 + x + 1. */
const table = Uint8Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80) === 0 ? crc << 1 : (crc << 1) ^ 0x107;
  return crc;
});

/** CRC-8 from 0, as FLAC's frames have it over their heads. */
export function crc8(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = table[crc ^ byte] ?? 0;
  return crc;
}
