import { expect, test } from "vitest";
import { splitLyrics } from "../../services/builtin/music/lyrics.ts";

/** Code that reads a caller's text. For such a run a bad pattern would start again at each character. */
const readers: [name: string, read: (text: string) => unknown, unit: string, units: number][] = [
  ["brackets without an end in lyrics", splitLyrics, "[", 1_000],
];

/** The least of three times, in ms of this thread. */
function cpuMs(work: () => unknown): number {
  const times = [1, 2, 3].map(() => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

test.each(readers)(
  "a run four times as long takes four times as long: %s",
  (_, read, unit, units) => {
    const once = cpuMs(() => read(unit.repeat(units)));
    const four = cpuMs(() => read(unit.repeat(4 * units)));
    // Sixteen times, where the time grows with the square of the length.
    expect(four).toBeLessThan(8 * once + 5);
  },
);
