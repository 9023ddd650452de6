import { useEffect, useMemo } from "preact/hooks";
import { type CallOptions, call, queryOf, v1 } from "../api.ts";
import { count, countShort, usd, usdTicks } from "../format.ts";
import { useApi, useFilters } from "../hooks.ts";
import { keyNames, loadKeyNames } from "../key-names.ts";
import { Chart } from "../kit/chart.tsx";
import { Segments, Select } from "../kit/form.tsx";
import { Page, Section } from "../kit/page.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { KeyFilter, ModelFilter } from "../offered-filters.tsx";
import type { UsageBucket, UsagePage } from "../types.ts";
import { maxBuckets, rangeChoices, rangeOf, type Width } from "../usage-ranges.ts";
import { type Figures, figures, groupsOf, seriesOf } from "../usage-sums.ts";
import { UsageByDay, UsageByGroup } from "./usage-tables.tsx";

type Group = "model" | "api_key_id" | "kind";

const groupChoices = [
  { value: "model", label: "Model" },
  { value: "api_key_id", label: "Key" },
  { value: "kind", label: "Kind" },
];

/** The chart, both tables and the CSV show the same buckets. */
export function Usage() {
  const { query, set } = useFilters();
  const by: Group = query.by === "api_key_id" || query.by === "kind" ? query.by : "model";
  const figure: Figures = figures.find((one) => one.field === query.figure) ?? figures[0];
  const range = rangeOf(query.range);
  const width: Width = range.mayBeHours && query.width !== "1d" ? "1h" : "1d";
  const api = queryOf({
    start_time: range.start,
    end_time: range.end,
    bucket_width: width,
    "group_by[]": by,
    "models[]": query.model,
    "api_key_ids[]": query.key,
    limit: maxBuckets[width],
  });
  const loaded = useApi(`/usage${api}`, allBuckets);
  useEffect(() => {
    if (by === "api_key_id") loadKeyNames();
  }, [by]);
  const names = keyNames.value;
  const buckets = loaded.data?.data;
  const groups = useMemo(() => groupsOf(buckets ?? [], by, names), [buckets, by, names]);
  const series = useMemo(
    () => seriesOf(buckets ?? [], groups, figure.figureOf),
    [buckets, groups, figure],
  );
  const times = useMemo(() => (buckets ?? []).map((bucket) => bucket.start_time), [buckets]);
  const timeOf = width === "1h" ? hourOf : dayOf;
  return (
    <Page
      title="Usage"
      lead="Usage and charges from the ledger: the totals are those that were billed."
      actions={
        <a
          class="button"
          href={`${v1}/usage${api}&format=csv`}
          download={`usage-${range.name}.csv`}
        >
          Download CSV
        </a>
      }
    >
      <Filters {...{ query, set, by, range, width, figure }} />
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!buckets && !loaded.error && (
        <div class="chart">
          <Waiting lines={8} />
        </div>
      )}
      {buckets && groups.length === 0 && (
        <Empty title="Nothing was used in this time">
          <p>
            Choose another time above, or <a href="/console/playground">try a model</a>: it is
            counted here as soon as it has ended.
          </p>
        </Empty>
      )}
      {buckets && groups.length > 0 && (
        <>
          <Chart
            label={`${figure.label} by ${by === "api_key_id" ? "key" : by}; the tables below have the same figures`}
            times={times}
            end={buckets.at(-1)?.end_time ?? range.end}
            series={series}
            format={figure.unit === "usd" ? usd : countShort}
            ticks={figure.unit === "usd" ? usdTicks : countTicks}
            timeOf={timeOf}
          />
          <Section title="In all">
            <UsageByGroup buckets={buckets} groups={groups} by={by} />
          </Section>
          <Section title={`${figure.label} by ${width === "1h" ? "hour" : "day"}`}>
            <UsageByDay
              buckets={buckets}
              series={series}
              timeOf={timeOf}
              format={figure.unit === "usd" ? undefined : count}
            />
          </Section>
        </>
      )}
    </Page>
  );
}

interface Shown {
  by: Group;
  range: ReturnType<typeof rangeOf>;
  width: Width;
  figure: Figures;
}

function Filters({ query, set, by, range, width, figure }: ReturnType<typeof useFilters> & Shown) {
  return (
    <div class="filters">
      <Select
        label="Time (UTC)"
        value={range.name}
        onValue={(value) => set({ range: value })}
        choices={rangeChoices()}
      />
      <Select
        label="By"
        value={by}
        onValue={(value) => set({ by: value })}
        choices={groupChoices}
      />
      <ModelFilter value={query.model ?? ""} onValue={(model) => set({ model })} />
      <KeyFilter value={query.key ?? ""} onValue={(key) => set({ key })} />
      {range.mayBeHours && (
        <Segments
          label="A bar for each"
          value={width}
          onValue={(value) => set({ width: value })}
          choices={[
            { value: "1h", label: "Hours" },
            { value: "1d", label: "Days" },
          ]}
        />
      )}
      <Segments
        label="Figure"
        value={figure.field}
        onValue={(value) => set({ figure: value })}
        choices={figures.map((one) => ({ value: one.field, label: one.label }))}
      />
    </div>
  );
}

/** All buckets of a time, which mostly fit on one page. The API ends a page early where its results are many. */
async function allBuckets(path: string, options: CallOptions): Promise<{ data: UsageBucket[] }> {
  const data: UsageBucket[] = [];
  for (let page: string | null = ""; page !== null; ) {
    const here: string = path + (page && `&page=${encodeURIComponent(page)}`);
    const answer: UsagePage = await call(here, options);
    data.push(...answer.data);
    page = answer.next_page;
  }
  return { data };
}

const utcDay = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
const utcHour = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});
const countTicks = (values: readonly number[]) => values.map(countShort);
const dayOf = (seconds: number) => utcDay.format(seconds * 1_000);
const hourOf = (seconds: number) => utcHour.format(seconds * 1_000);
