/** Pixels of a video: the shorter side is the resolution's number, both sides are even. */
export function videoSize(
  resolution: string,
  aspectRatio: string,
  _reference: { width: number; height: number } | undefined,
): { width: number; height: number } {
  const short = Number.parseInt(resolution, 10);
  const [across = 16, down = 9] =
    aspectRatio === "auto" ? [16, 9] : aspectRatio.split(":").map(Number);
  const even = (n: number) => 2 * Math.round(n / 2);
  return across >= down
    ? { width: even((short * across) / down), height: short }
    : { width: short, height: even((short * down) / across) };
}
