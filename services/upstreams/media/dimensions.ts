// Computes the pixels of an image or a video from the words of a request: its size, resolution and aspect ratio.

/** Width and height in pixels. */
export type Dimensions = { readonly width: number; readonly height: number };

/** The shape for `auto` where no reference suggests one. */
const DEFAULT_VIDEO_RATIO = 16 / 9;
const DEFAULT_IMAGE_RATIO = 1;
/** The widest shape that a reference can give. A wider reference is cut. */
const WIDEST_RATIO = 21 / 9;
/** One "k" of an image's resolution is the area of a square with this side. */
const KILO_SIDE_PIXELS = 1024;
/** Sides of images are multiples of this. */
const IMAGE_STEP_PIXELS = 16;
const VIDEO_STEP_PIXELS = 2;

/**
 * The frame of a video. `resolution` is `480p` and the like: the length of the shorter side. `aspectRatio` is `16:9` and the like, or
 * `auto`. With `auto` it is the shape of `reference`, at most 21:9, or 16:9 without one. Both sides are even. Throws `RangeError` on
 * other spellings.
 */
export function videoDimensions(
  resolution: string,
  aspectRatio: string,
  reference?: Dimensions,
): Dimensions {
  const short = /^(\d{2,4})p$/.exec(resolution)?.[1];
  if (short === undefined) throw new RangeError("a video's resolution looks like 480p");
  const ratio = parseRatio(aspectRatio, reference) ?? DEFAULT_VIDEO_RATIO;
  return fromShortSide(Number(short), ratio);
}

/** The known facts of an image's size. `size` is complete and is used before the others. */
export type ImageShape = {
  readonly size?: string | undefined;
  readonly resolution?: string | undefined;
  readonly aspectRatio?: string | undefined;
};

/**
 * The size of an image. `size` is `1792x1024` and the like, or `auto`. Otherwise `resolution`, default `1k`, gives the area (`1k` of
 * 1024 by 1024, `2k` four times that) or, as `720p`, the shorter side. `aspectRatio` gives the shape: `auto` is that of `reference`, or
 * square without one. Throws `RangeError` on other spellings.
 */
export function imageDimensions(shape: ImageShape, reference?: Dimensions): Dimensions {
  if (shape.size !== undefined && shape.size !== "auto") return parseSize(shape.size);
  const ratio = parseRatio(shape.aspectRatio ?? "auto", reference) ?? DEFAULT_IMAGE_RATIO;
  const resolution = shape.resolution ?? "1k";
  const short = /^(\d{2,4})p$/.exec(resolution)?.[1];
  if (short !== undefined) return fromShortSide(Number(short), ratio);
  const kilo = /^(\d)k$/i.exec(resolution)?.[1];
  if (kilo === undefined) throw new RangeError("a picture's resolution looks like 1k or 720p");
  const side = Number(kilo) * KILO_SIDE_PIXELS;
  return {
    width: toStep(side * Math.sqrt(ratio), IMAGE_STEP_PIXELS),
    height: toStep(side / Math.sqrt(ratio), IMAGE_STEP_PIXELS),
  };
}

function parseSize(size: string): Dimensions {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size) ?? [];
  if (width === undefined || height === undefined || Number(width) * Number(height) === 0) {
    throw new RangeError("a picture's size looks like 1024x1024");
  }
  return { width: Number(width), height: Number(height) };
}

/** Width by height as a number. Undefined where the default applies. */
function parseRatio(aspectRatio: string, reference: Dimensions | undefined): number | undefined {
  if (aspectRatio === "auto") {
    if (reference === undefined) return undefined;
    const natural = reference.width / reference.height;
    return Math.min(Math.max(natural, 1 / WIDEST_RATIO), WIDEST_RATIO);
  }
  const [, across, down] = /^(\d{1,3}):(\d{1,3})$/.exec(aspectRatio) ?? [];
  const ratio = Number(across) / Number(down);
  if (!(ratio > 0 && ratio < Number.POSITIVE_INFINITY)) {
    throw new RangeError("an aspect ratio looks like 16:9 or auto");
  }
  return ratio;
}

function fromShortSide(short: number, ratio: number): Dimensions {
  const side = toStep(short, VIDEO_STEP_PIXELS);
  return ratio >= 1
    ? { width: toStep(short * ratio, VIDEO_STEP_PIXELS), height: side }
    : { width: side, height: toStep(short / ratio, VIDEO_STEP_PIXELS) };
}

function toStep(length: number, step: number): number {
  return Math.max(step, Math.round(length / step) * step);
}
