// Finds which parts of a layer are visible, so that joining layers skips the others. `planar.ts` uses it.

/**
 * The stretches of each row of a layer that are visible, and those that hide everything below. Most of a landscape is empty or opaque,
 * so most pixels are skipped or copied rather than blended.
 */
export type Runs = {
  /** Row r has the runs from `rows[r]` up to, not including, `rows[r + 1]`. */
  readonly rows: Int32Array;
  /** First column of each run, and the column after its last. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1 where every pixel of the run is opaque. */
  readonly opaque: Uint8Array;
};

/** The opacity of a layer, one byte a pixel. */
type Alpha = { readonly data: Uint8Array; readonly width: number; readonly height: number };

/** An opaque or empty stretch shorter than this is blended with its neighbours. */
const SHORTEST_RUN_PIXELS = 24;

/** Finds the runs of every row. */
export function findRuns(alpha: Alpha): Runs {
  const { data, width, height } = alpha;
  const rows = new Int32Array(height + 1);
  const starts: number[] = [];
  const ends: number[] = [];
  const opaque: number[] = [];
  const add = (from: number, to: number, value: number): void => {
    starts.push(from);
    ends.push(to);
    opaque.push(value);
  };
  for (let row = 0; row < height; row++) {
    const base = row * width;
    // Everything from here on was seen but is in no run yet.
    let open = 0;
    for (let x = 0; x < width; ) {
      const value = data[base + x] as number;
      const from = x;
      while (x < width && data[base + x] === value) x++;
      const plain = value === 0 || value === 255;
      const long = x - from >= SHORTEST_RUN_PIXELS || (from === 0 && x === width);
      if (!plain || !long) continue;
      if (open < from) add(open, from, 0);
      if (value === 255) add(from, x, 1);
      open = x;
    }
    if (open < width) add(open, width, 0);
    rows[row + 1] = starts.length;
  }
  return {
    rows,
    starts: Int32Array.from(starts),
    ends: Int32Array.from(ends),
    opaque: Uint8Array.from(opaque),
  };
}
