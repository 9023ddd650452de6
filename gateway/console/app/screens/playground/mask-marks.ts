// The marks of which a painted mask consists. The area, the dialog and the file of a mask share them.

/** The pixels of an image. */
export interface Size {
  width: number;
  height: number;
}

/** A place of an image, in its pixels from the top left. */
export type Point = readonly [x: number, y: number];

/** The way of a brush from its lowering to its lifting. */
export interface Line {
  kind: "line";
  erases: boolean;
  /** Pixels of the image. */
  width: number;
  points: readonly Point[];
}

/** One act on a mask. Later acts cover earlier ones. A mask from a file takes the place of all before it, stretched over the image. */
export type Mark = Line | { kind: "file"; image: ImageBitmap } | { kind: "clear" };

/**
 * Paints a mark with the context's colours, in pixels of the image: what may change gets the colour, the rest of the image is
 * transparent.
 */
export function paint(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  mark: Mark,
  { width, height }: Size,
): void {
  if (mark.kind === "line") {
    const [first = [0, 0], ...rest] = mark.points;
    context.globalCompositeOperation = mark.erases ? "destination-out" : "source-over";
    context.beginPath();
    context.arc(...first, mark.width / 2, 0, 2 * Math.PI);
    context.fill();
    Object.assign(context, { lineWidth: mark.width, lineCap: "round", lineJoin: "round" });
    context.beginPath();
    context.moveTo(...first);
    for (const point of rest) context.lineTo(...point);
    context.stroke();
    return;
  }
  context.clearRect(0, 0, width, height);
  if (mark.kind === "clear") return;
  context.globalCompositeOperation = "source-over";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "destination-out";
  context.drawImage(mark.image, 0, 0, width, height);
}

/** The part of a canvas that is painted, from 0 to 1. */
export function paintedShare(context: CanvasRenderingContext2D): number {
  const { width, height } = context.canvas;
  const { data } = context.getImageData(0, 0, width, height);
  let painted = 0;
  for (let at = 3; at < data.length; at += 4) if (isPainted(data[at])) painted += 1;
  return painted / (width * height);
}

/** Is a pixel with this alpha painted? Those at the edge of a mark are in part. */
export const isPainted = (alpha = 0) => alpha > 127;
