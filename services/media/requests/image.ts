// Checks the body of an image job, and prices it.

import { optionalNumber, optionalString } from "#common/words/body.ts";
import { imageRatios, maxImages } from "#common/words/request-bounds.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ImageOption, ImageSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type Dimensions,
  type ImageShape,
  imageDimensions,
} from "../../upstreams/media/dimensions.ts";
import type { ReferenceInput } from "../references/port.ts";
import { autoRatio, checkRatio, closestRatio, offers, readPrompt } from "./fields.ts";
import type { PricedRequest } from "./index.ts";
import { checkReferenceCount } from "./references.ts";

/** Checks an image job's body against its model. The price is that of one image times their number. */
export function readImage(
  body: JsonObject,
  references: readonly ReferenceInput[],
  spec: ImageSpec,
): PricedRequest {
  const prompt = readPrompt(body);
  const most = spec.maxImages || maxImages;
  const count = optionalNumber(body, "n", { integer: true, min: 1, max: most }) ?? 1;
  const size = optionalString(body, "size");
  const resolution = optionalString(body, "resolution");
  const aspectRatio = optionalString(body, "aspectRatio");
  checkSize(size, spec);
  checkResolution(resolution, spec);
  if (aspectRatio !== undefined) checkRatio(aspectRatio, imageRatios(spec));
  checkAgreement({ size, aspectRatio }, spec);
  const shape = withSize({ size, resolution, aspectRatio }, spec);
  const { maxReferences } = spec;
  const images = references.filter(({ isMask }) => !isMask);
  checkReferenceCount(images, maxReferences, [{ maxReferences }]);
  const hasMask = images.length < references.length;
  if (hasMask && images.length === 0) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "mask",
      message: "A mask needs an image, whose pixels it says may change.",
    });
  }
  const quality = readQuality(body, spec);
  return {
    mode: "",
    price: creditsOf(spec, quality, shape.size) * BigInt(count),
    request: {
      ...{ kind: "image", prompt, count, ...pixelsOf(shape), ...shape },
      ...(quality !== undefined && { quality }),
      ...(hasMask && { hasMask }),
    },
  };
}

/** The qualities for which a model has prices. Most models have none. */
export function qualitiesOf({ options }: ImageSpec): string[] {
  return [...new Set(options.map(({ quality }) => quality).filter((one) => one !== ""))];
}

/** The quality that the caller chose. Undefined where it left it open, or the model has no prices by quality. */
function readQuality(body: JsonObject, spec: ImageSpec): string | undefined {
  const qualities = qualitiesOf(spec);
  if (qualities.length === 0) return undefined;
  const quality = optionalString(body, "quality", { oneOf: ["auto", ...qualities] });
  return quality === "auto" ? undefined : quality;
}

/**
 * The credits for one image: those of the first row that fits, or the model's usual price where none does. Where the caller leaves
 * quality or size open, the upstream may make the dearest, so that row counts.
 */
function creditsOf(spec: ImageSpec, quality: string | undefined, size = "auto"): bigint {
  const { options, creditPrice } = spec;
  // The empty name is for a quality or a size that is not known here.
  const known = quality === undefined ? qualitiesOf(spec) : [quality];
  const qualities = known.length > 0 ? known : [""];
  const anySize = spec.sizes.length > 0 ? spec.sizes : [...options.map((row) => row.size), ""];
  const sizes = size === "auto" ? anySize : [size];
  const prices = qualities.flatMap((made) =>
    sizes.flatMap((large) => {
      const fits = (row: ImageOption) =>
        (row.quality === "" || row.quality === made) && (row.size === "" || row.size === large);
      return options.find(fits)?.credits ?? creditPrice;
    }),
  );
  return prices.reduce((most, credits) => (credits > most ? credits : most));
}

/** The pixels of a shape. A resolution whose name holds no pixels is left to the upstream. */
export function pixelsOf(shape: ImageShape, reference?: Dimensions): Dimensions {
  try {
    return imageDimensions(shape, reference);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return imageDimensions({ aspectRatio: shape.aspectRatio }, reference);
  }
}

function checkSize(size: string | undefined, { sizes }: ImageSpec): void {
  if (size === undefined || size === "auto" || sizes.includes(size)) return;
  refuse(ErrorReason.UNSUPPORTED_SIZE, {
    param: "size",
    message: offers("size", "sizes", ["auto", ...sizes]),
  });
}

function checkResolution(resolution: string | undefined, { resolutions }: ImageSpec): void {
  if (resolution === undefined || resolutions.includes(resolution)) return;
  const rows = resolutions.map((one) => ({ resolution: one }));
  refuse(ErrorReason.UNSUPPORTED_RESOLUTION, {
    param: "resolution",
    message: offers("resolution", "resolutions", resolutions),
    metadata: { available_options: JSON.stringify(rows) },
  });
}

/** The requested shape. Undefined where the caller left it open. */
type AskedShape = Record<keyof ImageShape, string | undefined>;

/** For a model that lists sizes and no ratios, a ratio means the closest size: its upstream knows no other. */
function withSize(shape: AskedShape, { sizes, aspectRatios }: ImageSpec): AskedShape {
  const { size = "auto", aspectRatio = autoRatio } = shape;
  if (aspectRatio === autoRatio || aspectRatios.length > 0) return shape;
  if (size !== "auto") return { ...shape, aspectRatio: undefined };
  const [across = 1, down = 1] = aspectRatio.split(":").map(Number);
  const shapes = sizes.map((one) => one.replace("x", ":"));
  return {
    ...shape,
    size: closestRatio(across, down, shapes).replace(":", "x"),
    aspectRatio: undefined,
  };
}

/** A size has a fixed ratio. */
function checkAgreement({ size, aspectRatio }: ImageShape, spec: ImageSpec): void {
  if (size === undefined || size === "auto") return;
  if (aspectRatio === undefined || aspectRatio === autoRatio) return;
  const { width, height } = imageDimensions({ size });
  if (closestRatio(width, height, imageRatios(spec)) === aspectRatio) return;
  refuse(ErrorReason.INVALID_VALUE, {
    param: "aspectRatio",
    message: "The parameters 'aspectRatio' and 'size' contradict each other. Send one of them.",
  });
}
