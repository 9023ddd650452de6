/** A source of random choices. The same seed gives the same choices. */
export interface Chance {
  /** 0 to `below` - 1. */
  int(below: number): number;
  pick<T>(list: readonly T[]): T;
  /** True in `percent` of 100 cases. */
  likely(percent: number): boolean;
}

/** The generator Mulberry32. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const int = (below: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
  return {
    int,
    pick: (list) => list[int(list.length)] as (typeof list)[number],
    likely: (percent) => int(100) < percent,
  };
}

/** Changes one to six bytes before `end`, at random places and to random values. */
export function changeBytes(bytes: Uint8Array, chance: Chance, end = bytes.length): void {
  for (let changes = 1 + chance.int(6); changes > 0; changes--) {
    bytes[chance.int(end)] = chance.int(256);
  }
}
