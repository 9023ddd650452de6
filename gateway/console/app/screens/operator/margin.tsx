import { type CallOptions, call, queryOf } from "../../api.ts";
import { count } from "../../format.ts";
import { useApi, useFilters } from "../../hooks.ts";
import { Select } from "../../kit/form.tsx";
import { Page, Section } from "../../kit/page.tsx";
import { Empty, Waiting } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Count, Credits, Fact, Money } from "../../kit/values.tsx";
import { rangeChoices, rangeOf } from "../../usage-ranges.ts";
import { AccountFilter } from "./offered-filters.tsx";
import { type AdminList, admin, type MarginRow } from "./types.ts";

type Part = "day" | "model" | "upstream";

const choices: { value: string; label: string; parts: readonly Part[] }[] = [
  { value: "model,upstream", label: "Model, upstream", parts: ["model", "upstream"] },
  { value: "model", label: "Model", parts: ["model"] },
  { value: "upstream", label: "Upstream", parts: ["upstream"] },
  { value: "day", label: "Day", parts: ["day"] },
];

const heads: Record<Part, string> = { day: "Day (UTC)", model: "Model", upstream: "Upstream" };
const absent: Record<Part, string> = { day: "", model: "not recorded", upstream: "none answered" };

const figures: Column<MarginRow>[] = [
  { head: "Requests", numeric: true, cell: (one) => <Count value={one.requests} /> },
  {
    head: "Charged",
    numeric: true,
    cell: (one) => (
      <>
        <Money micros={one.spentUsdMicros} digits="all" />
        {Number(one.spentCredits) !== 0 && (
          <span class="sub">
            <Credits value={one.spentCredits} /> credits
          </span>
        )}
      </>
    ),
  },
  {
    head: "With a known cost",
    numeric: true,
    cell: (one) => (
      <>
        <Count value={one.costedRequests} />
        <span class="sub">
          <Money micros={one.costedUsdMicros} digits="all" /> charged
        </span>
      </>
    ),
  },
  {
    head: "Their cost",
    numeric: true,
    cell: (one) => <Money micros={one.upstreamCostUsdMicros} digits="all" />,
  },
  {
    head: "Margin",
    numeric: true,
    cell: (one) => <Money micros={one.marginUsdMicros} digits="all" />,
  },
];

/** The charges of requests, and their costs at the upstreams, from the ledger itself. */
export function Margin() {
  const { query, set } = useFilters();
  const range = rangeOf(query.range);
  const by = choices.find(({ value }) => value === query.by) ?? choices[0];
  const parts = by?.parts ?? [];
  const api = queryOf({ start_time: range.start, end_time: range.end, account: query.account });
  const groups = parts.map((part) => `&group_by[]=${part}`).join("");
  const loaded = useApi(`${admin}/margins${api}${groups}`, allRows);
  const rows = loaded.data?.data;
  return (
    <Page
      title="Margin"
      lead="Charges of requests, beside their cost to you where the upstream reports it or the catalog has your prices."
    >
      <div class="filters">
        <Select
          label="Time (UTC)"
          value={range.name}
          onValue={(value) => set({ range: value })}
          choices={rangeChoices()}
        />
        <Select
          label="By"
          value={by?.value ?? ""}
          onValue={(value) => set({ by: value })}
          choices={choices}
        />
        <AccountFilter value={query.account ?? ""} onValue={(account) => set({ account })} />
      </div>
      {!loaded.error && (
        <Section title="In all">{rows ? <Totals rows={rows} /> : <Waiting lines={4} />}</Section>
      )}
      <Section title={`By ${by?.label.toLowerCase()}`}>
        <Table
          caption="Charges and costs"
          columns={[...parts.map(columnOf), ...figures]}
          loaded={loaded}
          rowsOf={rows}
          keyOf={({ day, model, upstream }) => JSON.stringify([day, model, upstream])}
          empty={
            <Empty title="Nothing was used in this time">
              <p>
                Choose another time above. Requests are counted here within seconds of their end.
              </p>
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}

function Totals({ rows }: { rows: readonly MarginRow[] }) {
  const sum = (figureOf: (row: MarginRow) => string | number) =>
    String(rows.reduce((all, row) => all + BigInt(figureOf(row)), 0n));
  const costed = sum((row) => row.costedRequests);
  return (
    <dl class="facts">
      <Fact name="Charged">
        <Money micros={sum((row) => row.spentUsdMicros)} digits="all" />, for{" "}
        {count(sum((row) => row.requests))} requests and jobs
      </Fact>
      <Fact name="With a known cost">
        {count(costed)}, charged <Money micros={sum((row) => row.costedUsdMicros)} digits="all" />
      </Fact>
      <Fact name="Their cost">
        <Money micros={sum((row) => row.upstreamCostUsdMicros)} digits="all" />
      </Fact>
      <Fact name="Margin">
        <Money micros={sum((row) => row.marginUsdMicros)} digits="all" />
      </Fact>
    </dl>
  );
}

function columnOf(part: Part): Column<MarginRow> {
  return {
    head: heads[part],
    cell: (row) => row[part] ?? <span class="muted">{absent[part]}</span>,
  };
}

/** All rows, the newest day first and otherwise by charge. An answer with very many rows names the day that the next one begins with. */
async function allRows(path: string, options: CallOptions): Promise<AdminList<MarginRow>> {
  const data: MarginRow[] = [];
  for (let here = path; ; ) {
    const answer: AdminList<MarginRow> & { next: number | null } = await call(here, options);
    data.push(...answer.data);
    if (answer.next === null) break;
    here = path.replace(/start_time=\d+/, `start_time=${answer.next}`);
  }
  const byDay = (one: MarginRow, other: MarginRow) =>
    (other.day ?? "").localeCompare(one.day ?? "");
  data.sort(
    (one, other) =>
      byDay(one, other) || Number(BigInt(other.spentUsdMicros) - BigInt(one.spentUsdMicros)),
  );
  return { data, next: null };
}
