// Makes the smooth noise of which painters form land, clouds, water and space.

import type { Random } from "../seed.ts";

/** Smooth repeatable noise, values in about [-1, 1]. */
export type Noise = {
  readonly at: (x: number, y: number) => number;
  /** Sum of `octaves` layers, each twice as fine and half as strong. */
  readonly fractal: (x: number, y: number, octaves: number) => number;
  /** Like `fractal` with sharp creases, in about [0, 1]: mountain crests. */
  readonly ridged: (x: number, y: number, octaves: number) => number;
};

const TABLE_SIZE = 256;

/** Gradient noise over a shuffled table of 256 directions. */
export function createNoise(random: Random): Noise {
  const order = new Uint8Array(TABLE_SIZE * 2);
  for (let i = 0; i < TABLE_SIZE; i++) order[i] = i;
  for (let i = TABLE_SIZE - 1; i > 0; i--) {
    const j = random.below(i + 1);
    const kept = order[i] as number;
    order[i] = order[j] as number;
    order[j] = kept;
  }
  order.copyWithin(TABLE_SIZE, 0, TABLE_SIZE);
  const gradX = new Float64Array(TABLE_SIZE);
  const gradY = new Float64Array(TABLE_SIZE);
  for (let i = 0; i < TABLE_SIZE; i++) {
    const angle = (i / TABLE_SIZE) * Math.PI * 2;
    gradX[i] = Math.cos(angle) * 1.5;
    gradY[i] = Math.sin(angle) * 1.5;
  }
  const corner = (hash: number, x: number, y: number): number =>
    (gradX[hash] as number) * x + (gradY[hash] as number) * y;
  const at = (x: number, y: number): number => {
    const floorX = Math.floor(x);
    const floorY = Math.floor(y);
    const fx = x - floorX;
    const fy = y - floorY;
    const left = floorX & 255;
    const right = (left + 1) & 255;
    const upper = floorY & 255;
    const lower = (upper + 1) & 255;
    const u = fx * fx * fx * (fx * (fx * 6 - 15) + 10);
    const v = fy * fy * fy * (fy * (fy * 6 - 15) + 10);
    const leftOrder = order[left] as number;
    const rightOrder = order[right] as number;
    const n00 = corner(order[leftOrder + upper] as number, fx, fy);
    const n10 = corner(order[rightOrder + upper] as number, fx - 1, fy);
    const n01 = corner(order[leftOrder + lower] as number, fx, fy - 1);
    const n11 = corner(order[rightOrder + lower] as number, fx - 1, fy - 1);
    const top = n00 + (n10 - n00) * u;
    const bottom = n01 + (n11 - n01) * u;
    return top + (bottom - top) * v;
  };
  return {
    at,
    fractal: (x, y, octaves) => {
      let sum = 0;
      let strength = 0.5;
      let scale = 1;
      for (let i = 0; i < octaves; i++) {
        sum += strength * at(x * scale + i * 17.3, y * scale + i * 9.1);
        strength *= 0.5;
        scale *= 2;
      }
      return sum;
    },
    ridged: (x, y, octaves) => {
      let sum = 0;
      let strength = 0.5;
      let scale = 1;
      let previous = 1;
      for (let i = 0; i < octaves; i++) {
        const crease = 1 - Math.abs(at(x * scale + i * 17.3, y * scale + i * 9.1));
        const sharp = crease * crease * previous;
        sum += sharp * strength;
        previous = sharp;
        strength *= 0.5;
        scale *= 2.05;
      }
      return sum;
    },
  };
}
