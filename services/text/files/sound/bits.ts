/** Bits of bytes, the highest first. Behind the end there are zeros. */
export class Bits {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** More was read than there is. */
  get isOver(): boolean {
    return this.at > this.#bytes.length * 8;
  }

  /** At most 24 bits that come next. */
  peek(bits: number): number {
    const bytes = this.#bytes;
    const at = this.at >>> 3;
    const high = ((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16);
    const word = high | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
    return bits === 0 ? 0 : (word << (this.at & 7)) >>> (32 - bits);
  }

  /** At most 24 bits. */
  read(bits: number): number {
    const value = this.peek(bits);
    this.at += bits;
    return value;
  }
}
