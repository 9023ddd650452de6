// Paints a sailing boat, for scenes at sea. `scene.ts` asks for it.

import { mix, type Rgb, smoothstep } from "./colour.ts";
import { blendPixel, createRaster, type Layer } from "./raster.ts";
import type { ScenePlan } from "./scene-plan.ts";

/** A boat with two sails, seen from the side: rows from the masthead (0) to the waterline (1). */
type Span = readonly [left: number, right: number, colour: "sail" | "hull"];

/** Paints a sailing boat on the horizon, its sails lit by the sun. */
export function paintBoat(plan: ScenePlan, speed: number): Layer {
  const { frame, short, palette, horizon } = plan;
  const random = plan.random.fork("boat");
  const tall = Math.round(short * random.between(0.1, 0.16));
  const top = Math.max(0, Math.floor((horizon - tall) / 2) * 2);
  const raster = createRaster(plan.widthFor(speed), horizon - top + 2);
  const centre = frame.width * random.between(0.3, 0.7);
  const heading = random.next() < 0.5 ? 1 : -1;
  const sail = mix(palette.light, palette.glow, 0.18);
  const shade = mix(sail, palette.land[2] as Rgb, 0.5);
  const hull = mix(palette.land[3] as Rgb, palette.land[2] as Rgb, 0.15);
  for (let row = 0; row < Math.min(raster.height, horizon - top); row++) {
    const down = (row + top + 0.5 - (horizon - tall)) / tall;
    for (const [from, to, part] of boatSpans(down)) {
      const left = centre + Math.min(from * heading, to * heading) * tall;
      const right = centre + Math.max(from * heading, to * heading) * tall;
      for (let x = Math.floor(left); x <= right; x++) {
        const cover = Math.min(x + 1, right) - Math.max(x, left);
        const across = (x + 0.5 - left) / (right - left);
        const belly = smoothstep(0.2, 1, heading > 0 ? across : 1 - across);
        const paint = part === "hull" ? hull : mix(sail, shade, belly * 0.8);
        blendPixel(raster, x, row, paint, Math.min(Math.max(cover, 0), 1));
      }
    }
  }
  return { raster, top, speed };
}

function boatSpans(down: number): Span[] {
  if (down < 0) return [];
  if (down > 0.86) {
    const inward = (down - 0.86) * 0.6;
    return [[-0.36 + inward, 0.34 - inward * 1.4, "hull"]];
  }
  const spans: Span[] = [];
  // The mainsail leans on the mast and bellies out; the jib runs down from two thirds of it.
  const main = down / 0.82;
  if (main < 1) spans.push([-0.32 * main ** 0.8, -0.012, "sail"]);
  const jib = (down - 0.16) / 0.66;
  if (jib > 0 && jib < 1) spans.push([0.012, 0.27 * jib ** 0.9, "sail"]);
  spans.push([-0.008, 0.008, "hull"]);
  return spans;
}
