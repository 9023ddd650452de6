// The area on which a mask is painted, by pointer or keyboard.

import { useEffect, useRef, useState } from "preact/hooks";
import { contentOf } from "../files-calls.ts";
import { type Line, type Mark, type Point, paint, paintedShare, type Size } from "./mask-marks.ts";

/** The longer side of what is shown of a mask, in pixels: more than most screens show of it, and quick to paint again. */
const longerSide = 1_024;
/** Seen on images of most colours, in both themes. The style sheet lets the image shine through. */
const colour = "#ff2d78";
const arrows: Readonly<Record<string, Point>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** An image with the marks of its mask, and a brush that adds marks by pointer or keyboard. */
export function MaskCanvas({
  image,
  size,
  marks,
  tool,
  describedBy,
  onMark,
  onShare,
}: {
  /** The file's id. */
  image: string;
  size: Size;
  marks: readonly Mark[];
  tool: Pick<Line, "erases" | "width">;
  /** The id of the element that says how the brush is used. */
  describedBy: string;
  onMark(mark: Mark): void;
  /** The part of the image that is painted, from 0 to 1. */
  onShare(share: number): void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<Point>([size.width / 2, size.height / 2]);
  const scale = longerSide / Math.max(size.width, size.height);
  const repaint = () => {
    const context = contextOf(canvas.current, scale);
    context.clearRect(0, 0, size.width, size.height);
    for (const mark of marks) paint(context, mark, size);
    onShare(paintedShare(context));
  };
  useEffect(repaint, [marks]);
  const pen = usePen(tool, onMark, (mark) => paint(contextOf(canvas.current, scale), mark, size));
  const placeOf = (event: PointerEvent): Point => {
    const box = canvas.current?.getBoundingClientRect() ?? new DOMRect(0, 0, 1, 1);
    return [
      ((event.clientX - box.left) / box.width) * size.width,
      ((event.clientY - box.top) / box.height) * size.height,
    ];
  };
  const press = (event: KeyboardEvent) => {
    const arrow = arrows[event.key];
    const isSpace = event.key === " ";
    if (!arrow && !isSpace) return;
    // Neither scrolls the dialog.
    event.preventDefault();
    if (isSpace && !event.repeat) pen.isDown() ? pen.lift() : pen.lower(at);
    if (arrow) moveTo(stepped(at, arrow, tool.width / 4, size));
  };
  const moveTo = (place: Point) => {
    setAt(place);
    pen.move(place);
  };
  return (
    <div class="brush">
      <img src={contentOf(image)} alt="" />
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: a screen reader hands its arrow keys to an application alone. */}
      <canvas
        ref={canvas}
        width={Math.max(1, Math.round(size.width * scale))}
        height={Math.max(1, Math.round(size.height * scale))}
        role="application"
        aria-label="Brush over the image"
        aria-describedby={describedBy}
        tabIndex={0}
        onKeyDown={press}
        onBlur={pen.lift}
        onPointerDown={(event) => {
          if (!event.isPrimary || event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setAt(placeOf(event));
          pen.lower(placeOf(event));
        }}
        onPointerMove={(event) => {
          // A mouse that only hovers moves no brush that the keyboard has lowered.
          const isOther = event.buttons === 0 && pen.isDown();
          if (event.isPrimary && !isOther) moveTo(placeOf(event));
        }}
        onPointerUp={(event) => event.isPrimary && pen.lift()}
        onPointerCancel={(event) => {
          if (!event.isPrimary) return;
          pen.drop();
          repaint();
        }}
      />
      <svg viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
        {["under", "over"].map((name) => (
          <circle
            key={name}
            class={name}
            cx={at[0]}
            cy={at[1]}
            r={tool.width / 2}
            vector-effect="non-scaling-stroke"
          />
        ))}
      </svg>
    </div>
  );
}

/** Lines of a brush that is down: each piece is shown as it comes, and the whole is a mark when the brush is lifted. */
function usePen(
  tool: Pick<Line, "erases" | "width">,
  onMark: (mark: Mark) => void,
  show: (piece: Line) => void,
) {
  const line = useRef<Line & { points: Point[] }>(undefined);
  const lift = () => {
    if (line.current) onMark(line.current);
    line.current = undefined;
  };
  return {
    isDown: () => line.current !== undefined,
    lower(place: Point) {
      lift();
      line.current = { kind: "line", ...tool, points: [place] };
      show(line.current);
    },
    move(place: Point) {
      if (!line.current) return;
      show({ ...line.current, points: [...line.current.points.slice(-1), place] });
      line.current.points.push(place);
    },
    lift,
    /** Forgets the line. */
    drop() {
      line.current = undefined;
    },
  };
}

/** A context whose places are pixels of the image. */
function contextOf(canvas: HTMLCanvasElement | null, scale: number): CanvasRenderingContext2D {
  // Its pixels are read after each mark.
  const context = canvas?.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("This browser paints on no canvas.");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colour;
  context.strokeStyle = colour;
  return context;
}

function stepped(
  [x, y]: Point,
  [right, down]: Point,
  step: number,
  { width, height }: Size,
): Point {
  const within = (value: number, most: number) => Math.min(Math.max(0, value), most);
  return [within(x + right * step, width), within(y + down * step, height)];
}
