import { count, milliseconds, percent } from "../../format.ts";
import { useApi, useFilters } from "../../hooks.ts";
import { Select } from "../../kit/form.tsx";
import { Section } from "../../kit/page.tsx";
import { Spark } from "../../kit/spark.tsx";
import { Empty } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Count } from "../../kit/values.tsx";
import { type AdminList, admin, type HistoryFigures, type UpstreamHistory } from "./types.ts";

/** An upstream with all its models, or one of them. */
interface Row extends HistoryFigures {
  name: string;
  model?: string;
  hours?: UpstreamHistory["hours"];
}

const ranges = [
  { value: "day", label: "Last 24 hours" },
  { value: "week", label: "Last 7 days" },
];
const groups = [
  { value: "upstream", label: "Upstream" },
  { value: "model", label: "Upstream, model" },
];

const columns: Column<Row>[] = [
  {
    head: "Upstream",
    cell: ({ name, model }) => (
      <>
        {name}
        {model !== undefined && <span class="sub">{model}</span>}
      </>
    ),
  },
  { head: "Requests", numeric: true, cell: (one) => <Count value={one.requests} /> },
  {
    head: "Errors",
    numeric: true,
    cell: ({ requests, errors, errorRate, errorKinds }) => (
      <>
        <span class="num" title={`${count(errors)} of ${count(requests)}`}>
          {percent.format(errorRate)}
        </span>
        {Object.entries(errorKinds)
          .sort(([, one], [, other]) => other - one)
          .map(([kind, errors]) => (
            <span class="sub" key={kind} title={`${count(errors)} of ${count(requests)}`}>
              {percent.format(errors / requests)} {kind}
            </span>
          ))}
      </>
    ),
  },
  { head: "First output", numeric: true, cell: (one) => <Times of={one.firstOutputMs} /> },
  { head: "Whole answer", numeric: true, cell: (one) => <Times of={one.latencyMs} /> },
];

const hoursColumn: Column<Row> = {
  head: "Requests an hour",
  cell: ({ name, hours = [] }) => (
    <Spark label={`Requests of ${name} an hour`} values={hours.map(({ requests }) => requests)} />
  ),
};

/** The last day or week of each upstream, as all processes counted it. */
export function UpstreamHistories() {
  const { query, set } = useFilters();
  const range = ranges.find(({ value }) => value === query.range) ?? ranges[0];
  const isByModel = query.by === "model";
  const loaded = useApi<AdminList<UpstreamHistory>>(
    `${admin}/upstreams/history?range=${range?.value}`,
  );
  const rows = loaded.data?.data.flatMap((one): Row[] =>
    isByModel
      ? one.models.map(({ id, ...figures }) => ({ ...figures, name: one.name, model: id }))
      : [one],
  );
  return (
    <Section title="History">
      <p class="lead">
        Every attempt counts, including those that another upstream answered in the end. Times are
        the median and the 95th percentile, rounded up. Other replicas' counts arrive within a
        minute.
      </p>
      <div class="filters">
        <Select
          label="Time"
          value={range?.value ?? ""}
          onValue={(value) => set({ range: value })}
          choices={ranges}
        />
        <Select
          label="By"
          value={isByModel ? "model" : "upstream"}
          onValue={(value) => set({ by: value })}
          choices={groups}
        />
      </div>
      <Table
        caption="Upstreams in this time"
        columns={isByModel ? columns : [...columns, hoursColumn]}
        loaded={loaded}
        rowsOf={rows}
        keyOf={({ name, model }) => JSON.stringify([name, model])}
        empty={
          <Empty title="No upstream was asked in this time">
            <p>Each request to an upstream is counted here within a minute of its end.</p>
          </Empty>
        }
      />
    </Section>
  );
}

function Times({ of }: { of: HistoryFigures["latencyMs"] }) {
  if (!of) return <span class="muted">–</span>;
  return (
    <span class="num">
      {milliseconds(of.p50)}, {milliseconds(of.p95)}
    </span>
  );
}
