// Colours, and how they are mixed. All painters use it.

/** Red, green and blue, each 0 to 255, not necessarily whole. */
export type Rgb = readonly [number, number, number];

/** Reads `rrggbb`. */
export function hex(text: string): Rgb {
  const value = Number.parseInt(text, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** The colour `share` (0 to 1) of the way from `from` to `to`. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [
    from[0] + (to[0] - from[0]) * share,
    from[1] + (to[1] - from[1]) * share,
    from[2] + (to[2] - from[2]) * share,
  ];
}

/** Multiplies the brightness, keeping each channel in range. */
export function scale(colour: Rgb, factor: number): Rgb {
  return [
    Math.min(255, colour[0] * factor),
    Math.min(255, colour[1] * factor),
    Math.min(255, colour[2] * factor),
  ];
}

/** Turns the hue by `degrees`, keeping brightness (a rotation about the grey axis). */
export function turnHue(colour: Rgb, degrees: number): Rgb {
  const angle = (degrees * Math.PI) / 180;
  const cos = Math.cos(angle);
  const side = Math.sin(angle) * Math.sqrt(1 / 3);
  const third = (1 - cos) / 3;
  const [r, g, b] = colour;
  const keep = cos + third;
  const turned: Rgb = [
    r * keep + g * (third - side) + b * (third + side),
    r * (third + side) + g * keep + b * (third - side),
    r * (third - side) + g * (third + side) + b * keep,
  ];
  return [clampByte(turned[0]), clampByte(turned[1]), clampByte(turned[2])];
}

/** A colour ramp through evenly spaced stops, looked up by a share of 0 to 1. */
export function ramp(stops: readonly Rgb[]): (share: number) => Rgb {
  const last = stops.length - 1;
  return (share) => {
    const position = Math.min(Math.max(share, 0), 1) * last;
    const index = Math.min(Math.floor(position), last - 1);
    const from = stops[index] as Rgb;
    const to = stops[index + 1] as Rgb;
    const local = position - index;
    return mix(from, to, local * local * (3 - 2 * local) * 0.5 + local * 0.5);
  };
}

/** 0 below `low`, 1 above `high`, smooth between. */
export function smoothstep(low: number, high: number, value: number): number {
  const share = Math.min(Math.max((value - low) / (high - low), 0), 1);
  return share * share * (3 - 2 * share);
}

/** Holds a number in 0 to 255. */
function clampByte(value: number): number {
  return value < 0 ? 0 : Math.min(value, 255);
}
