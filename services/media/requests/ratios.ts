import { ErrorReason, refuse } from "#kit/errors.ts";
import { offers } from "#kit/offers.ts";

/** What upstream chooses itself. */
export const autoRatio = "auto";

/**
 * The supported ratio nearest to a width and height: the least distance of the logarithms, `auto` left out, the earlier in
 * the list on a tie. `auto` where the model names no other.
 */
export function closestRatio(width: number, height: number, supported: readonly string[]): string {
  const wanted = Math.log(width / height);
  let best = { ratio: autoRatio, distance: Number.POSITIVE_INFINITY };
  for (const ratio of supported) {
    const [across, down] = ratio.split(":").map(Number);
    if (!across || !down) continue;
    const distance = Math.abs(Math.log(across / down) - wanted);
    // Mirror images (16:9 and 9:16 seen from 1:1) are equally far but for rounding.
    if (distance < best.distance - 1e-9) best = { ratio, distance };
  }
  return best.ratio;
}

/** Refuses a ratio that the model does not list; `auto` is always taken. */
export function checkRatio(ratio: string, supported: readonly string[]): string {
  if (ratio === autoRatio || supported.includes(ratio)) return ratio;
  return refuse(ErrorReason.UNSUPPORTED_ASPECT_RATIO, {
    param: "aspectRatio",
    message: offers("aspect ratio but 'auto'", "aspect ratios", supported),
    // `auto` is taken of every model.
    metadata: {
      available_aspect_ratios: JSON.stringify(supported.length > 0 ? supported : [autoRatio]),
    },
  });
}
