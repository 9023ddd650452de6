// The tables below the chart of usage.

import type { ComponentChildren } from "preact";
import { Count, Credits, Money } from "../kit/values.tsx";
import type { UsageBucket, UsageResult } from "../types.ts";
import { type Group, sum } from "../usage-sums.ts";

interface Field {
  head: string;
  figureOf(result: UsageResult): number;
  show(value: number): ComponentChildren;
}

const short = (value: number) => <Count value={value} short />;
const fields: Field[] = [
  { head: "Requests", figureOf: (one) => one.num_model_requests, show: short },
  { head: "Input tokens", figureOf: (one) => one.input_tokens, show: short },
  { head: "Cached", figureOf: (one) => one.input_cached_tokens, show: short },
  { head: "Cache writes", figureOf: (one) => one.input_cache_write_tokens, show: short },
  { head: "For long", figureOf: (one) => one.input_cache_write_long_tokens, show: short },
  { head: "Audio in", figureOf: (one) => one.input_audio_tokens, show: short },
  { head: "Images in", figureOf: (one) => one.input_image_tokens, show: short },
  { head: "Output tokens", figureOf: (one) => one.output_tokens, show: short },
  { head: "Reasoning", figureOf: (one) => one.reasoning_tokens, show: short },
  { head: "Audio out", figureOf: (one) => one.output_audio_tokens, show: short },
  { head: "Images out", figureOf: (one) => one.output_image_tokens, show: short },
  { head: "Tool calls", figureOf: (one) => one.tool_calls, show: short },
  { head: "Images", figureOf: (one) => one.images, show: short },
  { head: "Seconds", figureOf: (one) => one.seconds, show: short },
  { head: "Characters", figureOf: (one) => one.characters, show: short },
  {
    head: "Credits",
    figureOf: (one) => one.spentCredits,
    show: (value) => <Credits value={value} />,
  },
  {
    head: "Dollars",
    figureOf: (one) => one.spentUsdMicros,
    show: (value) => <Money micros={value} digits="all" />,
  },
];

const headings = { model: "Model", api_key_id: "Key", kind: "Kind" };

/** Usage of each group in the whole time, without empty columns. */
export function UsageByGroup({
  buckets,
  groups,
  by,
}: {
  buckets: readonly UsageBucket[];
  groups: readonly Group[];
  by: keyof typeof headings;
}) {
  const shown = fields.filter(
    ({ head, figureOf }) => head === "Dollars" || sum(buckets, figureOf) !== 0,
  );
  const totalOf = (group: Group, field: Field) =>
    group.results.reduce((before, one) => before + field.figureOf(one), 0);
  return (
    <div class={shown.length > 4 ? "table-wrap is-wide" : "table-wrap"}>
      <table>
        <thead>
          <tr>
            <th scope="col">{headings[by]}</th>
            {shown.map((field) => (
              <th scope="col" class="numeric" key={field.head}>
                {field.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.value}>
              <th scope="row">{group.name}</th>
              {shown.map((field) => (
                <td class="numeric" key={field.head} data-label={field.head}>
                  {field.show(totalOf(group, field))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            {shown.map((field) => (
              <td class="numeric" key={field.head} data-label={field.head}>
                {field.show(sum(buckets, field.figureOf))}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

/** The bars of the chart as figures, the newest first. */
export function UsageByDay({
  buckets,
  series,
  timeOf,
  format,
}: {
  buckets: readonly UsageBucket[];
  series: readonly { name: string; values: readonly number[] }[];
  timeOf(seconds: number): string;
  /** Undefined: dollars, with all digits. */
  format: ((value: number) => string) | undefined;
}) {
  const show = (value: number) =>
    format ? <span class="num">{format(value)}</span> : <Money micros={value} digits="all" />;
  const totalOf = (place: number) =>
    series.reduce((before, one) => before + (one.values[place] ?? 0), 0);
  const places = buckets.map((_, place) => place).filter((place) => totalOf(place) !== 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach content that scrolls.
    <section class="table-wrap scrolls" tabIndex={0} aria-label="Figures of the chart">
      <table>
        <thead>
          <tr>
            <th scope="col">Begins (UTC)</th>
            {series.map((one) => (
              <th scope="col" class="numeric" key={one.name}>
                {one.name}
              </th>
            ))}
            <th scope="col" class="numeric">
              Total
            </th>
          </tr>
        </thead>
        <tbody>
          {places.reverse().map((place) => (
            <tr key={place}>
              <th scope="row" class="num">
                {timeOf(buckets[place]?.start_time ?? 0)}
              </th>
              {series.map((one) => (
                <td class="numeric" key={one.name} data-label={one.name}>
                  {show(one.values[place] ?? 0)}
                </td>
              ))}
              <td class="numeric" data-label="Total">
                {show(totalOf(place))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
