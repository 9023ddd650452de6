// Shows figures over time as stacked bars, for the screen of usage.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "../theme-choice.ts";

export interface Series {
  name: string;
  values: readonly number[];
}

/** As many colours as the style sheet has. The last one is for all other groups together. */
export const colours = 7;

const height = 260;
/** Share of a bucket's width that its bar takes. */
const barShare = 0.72;

/**
 * Stacked bars over time, of the same figures as the table below. Above the bars are the figures at the pointer. A reader who cannot
 * see the bars has the table.
 */
export function Chart({
  label,
  times,
  end,
  series,
  format,
  ticks,
  timeOf,
}: {
  label: string;
  /** Beginnings of the buckets, in seconds since 1970. */
  times: readonly number[];
  /** The end of the last bucket. */
  end: number;
  series: readonly Series[];
  format(value: number): string;
  /** The texts of the axis, which are exact. */
  ticks(values: readonly number[]): string[];
  timeOf(seconds: number): string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const { value: chosenTheme } = theme;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const draw = () => {
      const style = getComputedStyle(element);
      const options = optionsOf(element.clientWidth, series, style, { ticks, timeOf });
      options.scales = { ...options.scales, x: { time: true, range: [times[0] ?? 0, end] } };
      options.hooks = { setCursor: [(plot) => setPointed(plot.cursor.idx ?? null)] };
      return new uPlot(options, dataOf(times, series), element);
    };
    let plot = draw();
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    const sizes = new ResizeObserver(() => {
      if (element.clientWidth !== plot.width) plot.setSize({ width: element.clientWidth, height });
    });
    sizes.observe(element);
    return () => {
      scheme.removeEventListener("change", redraw);
      sizes.disconnect();
      plot.destroy();
    };
  }, [times, end, series, ticks, timeOf, chosenTheme]);
  const start = pointed === null ? undefined : times[pointed];
  return (
    <figure class="chart">
      <figcaption>
        <ul class="legend">
          {series.map((one, index) => (
            <li key={one.name}>
              <i class={`swatch c${colourOf(index)}`} />
              {one.name}
              {pointed !== null && <strong>{format(one.values[pointed] ?? 0)}</strong>}
            </li>
          ))}
        </ul>
        <span class="muted num">{start === undefined ? "" : timeOf(start)}</span>
      </figcaption>
      <div class="plot" ref={place} role="img" aria-label={label} />
    </figure>
  );
}

const colourOf = (index: number) => Math.min(index + 1, colours);

/** Each series lies on top of those after it. So the first is painted first, as the sum of all, and the others over it. */
function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const sums: number[][] = [];
  let above = times.map(() => 0);
  for (const { values } of [...series].reverse()) {
    above = above.map((sum, place) => sum + (values[place] ?? 0));
    sums.unshift(above);
  }
  return [[...times], ...sums];
}

function optionsOf(
  width: number,
  series: readonly Series[],
  style: CSSStyleDeclaration,
  texts: { ticks(values: readonly number[]): string[]; timeOf(seconds: number): string },
): uPlot.Options {
  // A canvas has no custom properties. The present theme's colours are read from the element.
  const colour = (name: string) => resolved(style, name);
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  const bars = uPlot.paths.bars?.({ size: [barShare, 64], align: 1 });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 1)] } },
    // Buckets are days and hours of UTC, and so is the axis.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC"),
    axes: [
      {
        ...axis,
        size: 28,
        grid: { show: false },
        values: (_plot, splits) => splits.map(texts.timeOf),
      },
      { ...axis, size: 76, values: (_plot, splits) => texts.ticks(splits) },
    ],
    series: [
      {},
      ...series.map((one, index) => ({
        label: one.name,
        fill: colour(`--c${colourOf(index)}`),
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
  };
}

/** The present colour of a `light-dark(…)`. Custom properties keep their text, but a property that uses one has the colour. */
function resolved(style: CSSStyleDeclaration, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color || style.color;
}
