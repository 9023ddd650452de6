import { queryOf } from "../api.ts";
import { count, localZone, milliseconds } from "../format.ts";
import { useApi, useFilters, usePages } from "../hooks.ts";
import { Explained } from "../kit/explained.tsx";
import { Select } from "../kit/form.tsx";
import { KeyName } from "../kit/key-name.tsx";
import { Page } from "../kit/page.tsx";
import { SearchField } from "../kit/search.tsx";
import { Empty, ErrorText, Failure, Waiting } from "../kit/states.tsx";
import { type Column, Pager, Table } from "../kit/table.tsx";
import { Count, Credits, Fact, Id, ModelId, Money, ShortId, Status, When } from "../kit/values.tsx";
import { KeyFilter, ModelFilter } from "../offered-filters.tsx";
import { may } from "../session.ts";
import { choicesOf, requestStatuses } from "../statuses.ts";
import { RangeFilter, useTimeRange } from "../time-range.tsx";
import type { Generation, List, RequestRecord } from "../types.ts";
import { FirstWords, useFirstWords } from "./first-words.tsx";
import { PartFacts } from "./priced-parts.tsx";

const requestKinds = ["text", "image", "video", "music", "speech"];

const columns: Column<RequestRecord>[] = [
  {
    head: `Time (${localZone})`,
    cell: (row) => (
      <>
        <When at={row.createdAt} style="second" />
        <span class="sub">
          <a href={`/console/requests?id=${encodeURIComponent(row.id)}`}>
            <ShortId id={row.id} />
          </a>
        </span>
        <FirstWords of={row.id} />
      </>
    ),
  },
  {
    head: "Model",
    cell: (row) => (
      <>
        {row.model ? <ModelId id={row.model} /> : "not recorded"}
        <span class="sub">
          {row.kind}
          {row.streamed && ", streamed"}
        </span>
      </>
    ),
  },
  {
    head: "Status",
    cell: (row) => (
      <>
        <Status of="request" value={row.status} />
        {row.error && (
          <span class="sub">
            <Explained meaning={row.error.message}>{row.error.code}</Explained>
          </span>
        )}
      </>
    ),
  },
  { head: "Amount", numeric: true, cell: (row) => <AmountOf row={row} /> },
  { head: "First output", numeric: true, cell: (row) => <Duration value={row.firstOutputMs} /> },
  { head: "Duration", numeric: true, cell: (row) => <Duration value={row.durationMs} /> },
  { head: "Cost", numeric: true, cell: (row) => <Cost row={row} /> },
];
const keyColumn: Column<RequestRecord> = {
  head: "Key",
  cell: (row) => <KeyName id={row.keyId} />,
};

/** The ledger's records, newest first: each request with its duration and cost. */
export function Requests() {
  const { query, set } = useFilters();
  const pages = usePages();
  const { model, key, status, kind, id } = query;
  const range = useTimeRange();
  const list = useApi<List<RequestRecord>>(
    id
      ? null
      : `/requests${queryOf({ model, key, status, kind, ...range, after: pages.after, limit: 25 })}`,
  );
  const seesAll = may("usage:read-all");
  useFirstWords();
  return (
    <Page title="Requests" lead="Each request with its tokens, times and cost, newest first.">
      <SearchField
        label="Find by id"
        placeholder="resp_…, job_…, req_…"
        value={id ?? ""}
        onSearch={(wanted) => set({ id: wanted })}
      />
      {id ? (
        <OneRequest key={id} id={id} />
      ) : (
        <>
          <div class="filters">
            <KindAndStatus />
            <ModelFilter value={model ?? ""} onValue={(value) => set({ model: value })} />
            {seesAll && <KeyFilter value={key ?? ""} onValue={(value) => set({ key: value })} />}
            <RangeFilter label="Ended" />
          </div>
          <Table
            caption="Requests"
            columns={seesAll ? [...columns.slice(0, 2), keyColumn, ...columns.slice(2)] : columns}
            loaded={list}
            rowsOf={list.data?.data}
            // An upstream may give two answers the same id.
            keyOf={(row) => `${row.id} ${row.requestId} ${row.createdAt}`}
            empty={
              <Empty title={pages.after ? "No more requests" : "No requests here"}>
                <p>
                  Clear the filters above, or <a href="/console/playground">make a request</a>: it
                  is listed when it has ended.
                </p>
              </Empty>
            }
          />
          <Pager pages={pages} nextCursor={list.data?.nextCursor} />
        </>
      )}
    </Page>
  );
}

/** The filters of a list of requests by kind and by status. */
export function KindAndStatus() {
  const { query, set } = useFilters();
  return (
    <>
      <Select
        label="Kind"
        value={query.kind ?? ""}
        onValue={(value) => set({ kind: value })}
        choices={[{ value: "", label: "All kinds" }, ...requestKinds]}
      />
      <Select
        label="Status"
        value={query.status ?? ""}
        onValue={(value) => set({ status: value })}
        choices={[{ value: "", label: "Any status" }, ...choicesOf(requestStatuses)]}
      />
    </>
  );
}

function OneRequest({ id }: { id: string }) {
  const loaded = useApi<{ data: Generation }>(`/generation${queryOf({ id })}`);
  const record = loaded.data?.data;
  // A request that is charged by images, seconds or characters has no tokens.
  const hasTokens =
    (record?.native_tokens_prompt ?? 0) + (record?.native_tokens_completion ?? 0) > 0;
  return (
    <section class="card stack">
      <div class="row spread">
        <h2>
          <Id>{id}</Id>
        </h2>
        <a class="button small" href="/console/requests">
          All requests
        </a>
      </div>
      <ErrorText error={loaded.error} />
      {!record && !loaded.error && <Waiting lines={6} />}
      {record?.error && <Failure of={record.error} />}
      {record && (
        <dl class="facts">
          <Fact name="Status">
            <Status of="request" value={record.status} isToldBeside />{" "}
            {requestStatuses[record.status]}
          </Fact>
          <Fact name="Time">
            <When at={record.created_at} style="second" />
          </Fact>
          <Fact name="Model">{record.model}</Fact>
          <Fact name="Kind">
            {record.kind}
            {record.streamed && ", streamed"}
          </Fact>
          <Fact name="Key">
            <KeyName id={record.keyId} />
          </Fact>
          {hasTokens && (
            <>
              <Fact name="Input">
                <Tokens value={record.native_tokens_prompt} /> (
                {count(record.native_tokens_cached ?? 0)} cached)
              </Fact>
              <Fact name="Output">
                <Tokens value={record.native_tokens_completion} /> (
                {count(record.native_tokens_reasoning ?? 0)} of reasoning)
              </Fact>
            </>
          )}
          <PartFacts record={record} />
          <Fact name="First output">
            <Duration value={record.latency} />
          </Fact>
          <Fact name="Duration">
            <Duration value={record.generation_time} />
          </Fact>
          {!record.error && record.finish_reason && (
            <Fact name="Ended because of">{record.finish_reason}</Fact>
          )}
          <Fact name="Cost">
            {(record.costUsdMicros > 0 || record.creditsCharged === 0) && (
              <Money micros={record.costUsdMicros} digits="price" />
            )}
            {record.costUsdMicros > 0 && record.creditsCharged > 0 && " and "}
            {record.creditsCharged > 0 && (
              <>
                <Credits value={record.creditsCharged} /> credits
              </>
            )}
          </Fact>
          {record.requestId && (
            <Fact name="Request id">
              <Id>{record.requestId}</Id>
            </Fact>
          )}
          {id.startsWith("job_") && (
            <Fact name="Job">
              <a href={`/console/jobs?id=${encodeURIComponent(id)}`}>{id}</a>
            </Fact>
          )}
        </dl>
      )}
    </section>
  );
}

function Tokens({ value }: { value: number | null }) {
  return value === null ? <>none</> : <>{count(value)} tokens</>;
}

/** The charged amounts: tokens of text, images, seconds, characters. */
export function AmountOf({ row }: { row: RequestRecord }) {
  const { tokens, images, seconds, characters } = row;
  if (tokens.input + tokens.output > 0) {
    return (
      <span class="num">
        <Count value={tokens.input} short /> <span class="muted">in</span>{" "}
        <Count value={tokens.output} short /> <span class="muted">out</span>
      </span>
    );
  }
  const parts = [
    images > 0 && `${count(images)} ${images === 1 ? "image" : "images"}`,
    seconds > 0 && `${count(seconds)} s`,
    characters > 0 && `${count(characters)} characters`,
  ].filter((part) => part !== false);
  if (parts.length === 0) return <span class="muted">none</span>;
  return (
    <>
      {parts.map((part, place) => (
        <span key={part}>
          {place > 0 && ", "}
          <span class="num">{part}</span>
        </span>
      ))}
    </>
  );
}

export function Cost({ row }: { row: RequestRecord }) {
  if (row.creditsCharged === 0) return <Money micros={row.costUsdMicros} digits="all" />;
  return (
    <>
      <Credits value={row.creditsCharged} /> credits
    </>
  );
}

export function Duration({ value }: { value: number | null }) {
  if (value === null) return <span class="muted">–</span>;
  return (
    <span class="num" title={`${count(value)} ms`}>
      {milliseconds(value)}
    </span>
  );
}
