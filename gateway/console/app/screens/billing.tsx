import { queryOf, v1 } from "../api.ts";
import { useApi, useFilters, usePages } from "../hooks.ts";
import { Amount } from "../kit/amount.tsx";
import { Segments, Select } from "../kit/form.tsx";
import { KeyName } from "../kit/key-name.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Notice, Waiting } from "../kit/states.tsx";
import { type Column, Pager, Table } from "../kit/table.tsx";
import { Id, StatusWord, When } from "../kit/values.tsx";
import { may } from "../session.ts";
import { noRange, RangeFilter, useTimeRange } from "../time-range.tsx";
import type { BillingAlerts, BillingEntry, Hold, List } from "../types.ts";
import { AlertForm } from "./alert-form.tsx";

const tabs = [
  { value: "entries", label: "Entries" },
  { value: "holds", label: "Held now" },
  { value: "alerts", label: "Alerts" },
];

export function Billing() {
  const { query, set } = useFilters();
  const tab = tabs.find(({ value }) => value === query.tab)?.value ?? "entries";
  return (
    <Page
      title="Billing"
      lead={
        may("usage:read-all")
          ? "Entries of the account's ledger, and money that is held."
          : "Charges of your key, and money that is held for it."
      }
      actions={tab === "entries" && <Downloads kind={query.kind} />}
    >
      <div class="filters">
        <Segments
          label="Part"
          value={tab}
          onValue={(value) =>
            set({ ...noRange, tab: value === "entries" ? undefined : value, kind: undefined })
          }
          choices={tabs}
        />
      </div>
      {tab === "entries" && <Entries />}
      {tab === "holds" && <Holds />}
      {tab === "alerts" && <Alerts />}
    </Page>
  );
}

/** The API streams all entries, the newest first, however many there are. */
function Downloads({ kind }: { kind: string | undefined }) {
  const range = useTimeRange();
  const link = (format: string) => (
    <a
      class="button"
      href={`${v1}/billing/entries${queryOf({ kind, ...range, format })}`}
      download={`entries.${format}`}
    >
      Download {format === "csv" ? "CSV" : "JSON lines"}
    </a>
  );
  return (
    <>
      {link("csv")}
      {link("jsonl")}
    </>
  );
}

const entryColumns: Column<BillingEntry>[] = [
  { head: "Time", cell: (entry) => <When at={entry.createdAt} style="second" /> },
  {
    head: "What",
    cell: (entry) => (
      <>
        <StatusWord
          of="entry"
          value={entry.takeBackOf === null ? entry.kind : "grant taken back"}
        />
        <span class="sub">
          {entry.request ? (
            <a href={`/console/requests?id=${encodeURIComponent(entry.request)}`}>{entry.model}</a>
          ) : (
            entry.id
          )}
        </span>
      </>
    ),
  },
  { head: "Key", cell: (entry) => <KeyName id={entry.keyId} /> },
  {
    head: "Amount",
    numeric: true,
    cell: (entry) => (
      <span class={entry.amount > 0 ? "credit" : undefined}>
        {entry.amount > 0 && "+"}
        <Amount unit={entry.unit} value={entry.amount} exact />
      </span>
    ),
  },
  {
    head: "Balance after",
    numeric: true,
    cell: (entry) => <Amount unit={entry.unit} value={entry.balanceAfter} exact />,
  },
];

function Entries() {
  const { query, set } = useFilters();
  const pages = usePages();
  const range = useTimeRange();
  const loaded = useApi<List<BillingEntry>>(
    `/billing/entries${queryOf({ kind: query.kind, ...range, after: pages.after, limit: 25 })}`,
  );
  return (
    <>
      <div class="filters">
        <Select
          label="Kind of entry"
          value={query.kind ?? ""}
          onValue={(kind) => set({ kind })}
          choices={[
            { value: "", label: "All kinds" },
            { value: "charge", label: "Charges" },
            { value: "grant", label: "Grants" },
            { value: "refund", label: "Refunds" },
          ]}
        />
        <RangeFilter label="Time" />
      </div>
      <Table
        caption="Entries of the ledger"
        columns={entryColumns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(entry) => entry.id}
        empty={
          <Empty title="No entries here">
            <p>
              Each charge is written here when its request has ended. The operator adds to the
              balance.
            </p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.nextCursor} />
    </>
  );
}

const holdColumns: Column<Hold>[] = [
  { head: "For", cell: (hold) => <Id>{hold.request}</Id> },
  { head: "Kind", cell: (hold) => <StatusWord of="hold" value={hold.kind} /> },
  { head: "Key", cell: (hold) => <KeyName id={hold.keyId} /> },
  { head: "Since", cell: (hold) => <When at={hold.createdAt} style="ago" />, numeric: true },
  {
    head: "Amount",
    numeric: true,
    cell: (hold) => <Amount unit={hold.unit} value={hold.amount} exact />,
  },
];

function Holds() {
  const pages = usePages();
  const loaded = useApi<List<Hold>>(`/billing/holds${queryOf({ after: pages.after, limit: 25 })}`);
  return (
    <>
      <Table
        caption="Held now"
        columns={holdColumns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(hold) => hold.id}
        empty={
          <Empty title="Nothing is held">
            <p>
              While a request or job runs, the most that it may cost is held of the balance. The
              rest is free again when it ends.
            </p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.nextCursor} />
    </>
  );
}

const alertsPath = "/billing/alerts";

/** The balance at which the account gets an alert of low funds, and the alert's address. */
function Alerts() {
  const loaded = useApi<BillingAlerts>(alertsPath);
  const mayChange = may("keys");
  return (
    <>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting lines={3} />}
      {loaded.data && (
        <AlertForm
          path={alertsPath}
          lowBalanceUsdMicros={loaded.data.lowBalanceUsdMicros}
          webhookUrl={loaded.data.webhookUrl}
          mayChange={mayChange}
          webhookHint="Empty: no alert is sent."
        >
          <p class="lead">
            The webhook gets one message each time the balance falls below the amount. It also gets
            one a period when the limit of a key without a webhook refuses a request. Messages are
            listed under <a href="/console/webhooks">Webhooks</a>.
          </p>
          {!mayChange && (
            <Notice>Your key may look at this; changing it needs the scope “keys”.</Notice>
          )}
        </AlertForm>
      )}
    </>
  );
}
