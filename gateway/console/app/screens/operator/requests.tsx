// The operator's screen of the requests of all accounts.

import { queryOf } from "../../api.ts";
import { localZone } from "../../format.ts";
import { useApi, useFilters, usePages, useReloading } from "../../hooks.ts";
import { TextField } from "../../kit/form.tsx";
import { Page } from "../../kit/page.tsx";
import { SearchField } from "../../kit/search.tsx";
import { Empty, ErrorText, Failure, Waiting } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { Fact, Id, ShortId, Status, When } from "../../kit/values.tsx";
import { requestStatuses } from "../../statuses.ts";
import { RangeFilter, useTimeRange } from "../../time-range.tsx";
import { AmountOf, Cost, Duration, KindAndStatus } from "../requests.tsx";
import { AccountLink } from "./account-link.tsx";
import { accountPath } from "./accounts.tsx";
import { keyPath } from "./keys.tsx";
import { AccountFilter, CatalogModelFilter, UpstreamFilter } from "./offered-filters.tsx";
import { type AdminList, type AdminRequest, admin } from "./types.ts";

/** The record of a request, or the job of that id. */
export const requestPath = (id: string) =>
  id.startsWith("job_")
    ? `/console/operator/jobs?id=${encodeURIComponent(id)}`
    : `/console/operator/requests?id=${encodeURIComponent(id)}`;

const columns: Column<AdminRequest>[] = [
  {
    head: `Time (${localZone})`,
    cell: (row) => (
      <>
        <When at={row.createdAt} style="second" />
        <span class="sub">
          <a href={requestPath(row.id)}>
            <ShortId id={row.id} />
          </a>
        </span>
      </>
    ),
  },
  {
    head: "Account, key",
    cell: (row) => (
      <>
        <AccountLink of={row} />
        <span class="sub">
          <a href={keyPath(row.keyId)}>
            <ShortId id={row.keyId} />
          </a>
        </span>
      </>
    ),
  },
  {
    head: "Model, upstream",
    cell: (row) => (
      <>
        {row.model ?? "not recorded"}
        <span class="sub">
          {row.kind}, {row.upstream ?? "none answered"}
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
          <span class="sub" title={row.error.message}>
            {row.error.code}
          </span>
        )}
        {row.failedTries.map((one, place) => (
          <span class="sub" key={`${place} ${one.upstream}`}>
            {one.upstream}: {failureText(one.failure, one.status)}
          </span>
        ))}
        {row.failedTries.length === 0 && row.upstreamFailure && (
          <span class="sub">
            {failureText(row.upstreamFailure.kind, row.upstreamFailure.status)}
          </span>
        )}
      </>
    ),
  },
  { head: "Amount", numeric: true, cell: (row) => <AmountOf row={row} /> },
  { head: "First output", numeric: true, cell: (row) => <Duration value={row.firstOutputMs} /> },
  { head: "Duration", numeric: true, cell: (row) => <Duration value={row.durationMs} /> },
  { head: "Charged", numeric: true, cell: (row) => <Cost row={row} /> },
];

/** An upstream may give two answers the same id. */
const keyOf = (row: AdminRequest) => `${row.accountId} ${row.unit} ${row.entry}`;

/** Requests and jobs of all accounts that ended: never what their callers wrote or got. */
export function OperatorRequests() {
  const { query, set } = useFilters();
  const pages = usePages();
  const { account, key, model, upstream, status, kind, id } = query;
  const filters = { account, key, model, upstream, status, kind };
  const range = useTimeRange();
  const list = useApi<AdminList<AdminRequest>>(
    id
      ? null
      : `${admin}/requests${queryOf({ ...filters, ...range, after: pages.after, limit: 25 })}`,
  );
  const of = (name: keyof typeof filters) => ({
    value: query[name] ?? "",
    onValue: (value: string) => set({ [name]: value }),
  });
  return (
    <Page
      title="Requests"
      lead="Ended requests and jobs of all accounts, newest first. Prompts and answers are not shown."
    >
      <SearchField
        label="Find by id"
        placeholder="req_…, resp_…, job_…"
        value={id ?? ""}
        onSearch={(wanted) => set({ id: wanted })}
      />
      {id ? (
        <Found key={id} id={id} />
      ) : (
        <>
          <div class="filters">
            <AccountFilter {...of("account")} />
            <TextField label="Key" placeholder="key_…" {...of("key")} />
            <CatalogModelFilter {...of("model")} />
            <UpstreamFilter {...of("upstream")} />
            <KindAndStatus />
            <RangeFilter label="Ended" />
          </div>
          <Table
            caption="Requests"
            columns={columns}
            loaded={list}
            rowsOf={list.data?.data}
            keyOf={keyOf}
            empty={
              list.data?.next ? (
                <Empty title="No match so far">
                  <p>Go on to older ones below, or choose a time above.</p>
                </Empty>
              ) : (
                <Empty title={pages.after ? "No more requests" : "No requests here"}>
                  <p>Clear the filters above. A request is listed some seconds after its end.</p>
                </Empty>
              )
            }
          />
          <Pager pages={pages} nextCursor={list.data?.next} />
        </>
      )}
    </Page>
  );
}

/** The requests with an id. Mostly it is one. */
function Found({ id }: { id: string }) {
  const loaded = useApi<AdminList<AdminRequest>>(`${admin}/requests${queryOf({ id })}`);
  const rows = loaded.data?.data;
  useReloading(rows?.length === 0, loaded.reload);
  return (
    <>
      <p>
        <a class="button small" href="/console/operator/requests">
          All requests
        </a>
      </p>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!rows && !loaded.error && <Waiting lines={6} />}
      {rows?.length === 0 && (
        <Empty title="No request has this id">
          <p>
            A request is found some seconds after its end, and is looked for again by itself. One
            that was refused before a model was asked, such as for its key or its balance, is not
            kept.
          </p>
        </Empty>
      )}
      {rows?.map((row) => (
        <OneRequest key={keyOf(row)} row={row} />
      ))}
    </>
  );
}

function OneRequest({ row }: { row: AdminRequest }) {
  const { error, upstreamFailure: failure } = row;
  return (
    <section class="card stack">
      <h2>
        <Id>{row.id}</Id>
      </h2>
      {error && <Failure of={error} />}
      <dl class="facts">
        <Fact name="Status">
          <Status of="request" value={row.status} isToldBeside /> {requestStatuses[row.status]}
        </Fact>
        <Fact name="Time">
          <When at={row.createdAt} style="second" />
        </Fact>
        <Fact name="Account">
          <a href={accountPath(row.accountId)}>{row.accountId}</a>
        </Fact>
        <Fact name="Key">
          <a href={keyPath(row.keyId)}>{row.keyId}</a>
        </Fact>
        <Fact name="Model">
          {row.model ?? "not recorded"} ({row.kind}
          {row.streamed && ", streamed"})
        </Fact>
        <Fact name="Upstream">{row.upstream ?? "none answered"}</Fact>
        {failure && (
          <Fact name="The upstream's failure">{failureText(failure.kind, failure.status)}</Fact>
        )}
        {row.failedTries.length > 0 && (
          <Fact name="Failed tries">
            {row.failedTries
              .map((one) => `${one.upstream}: ${failureText(one.failure, one.status)}`)
              .join(", ")}
          </Fact>
        )}
        <Fact name="Amount">
          <AmountOf row={row} />
        </Fact>
        <Fact name="First output">
          <Duration value={row.firstOutputMs} />
        </Fact>
        <Fact name="Duration">
          <Duration value={row.durationMs} />
        </Fact>
        <Fact name="Charged">
          <Cost row={row} />
        </Fact>
        {row.requestId && (
          <Fact name="Request id">
            <Id>{row.requestId}</Id>
          </Fact>
        )}
        {row.id.startsWith("job_") && (
          <Fact name="Job">
            <a href={requestPath(row.id)}>{row.id}</a>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function failureText(kind: string, status: number | null): string {
  return status === null ? kind : `${kind} (${status})`;
}
