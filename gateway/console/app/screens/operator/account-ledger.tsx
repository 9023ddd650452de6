import { useState } from "preact/hooks";
import { queryOf } from "../../api.ts";
import { useApi, usePages } from "../../hooks.ts";
import { Amount } from "../../kit/amount.tsx";
import { TextField } from "../../kit/form.tsx";
import { Empty } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { Id, StatusWord, When } from "../../kit/values.tsx";
import { requestPath } from "./requests.tsx";
import type { AdminList, LedgerEntry } from "./types.ts";

/** A hold and its end name the request. Others name an operation. */
const requestId = /^(req|job)_/;

const columns: Column<LedgerEntry>[] = [
  {
    head: "Entry",
    cell: (entry) => (
      <>
        <span class="num">{entry.number}</span>{" "}
        <StatusWord of="journal" value={entry.takeBackOf === null ? entry.kind : "take back"} />
        <span class="sub">
          <When at={entry.createdAt} style="second" />
        </span>
      </>
    ),
  },
  {
    head: "For",
    cell: (entry) => (
      <>
        {entry.ref && requestId.test(entry.ref) ? (
          <a href={requestPath(entry.ref)}>
            <Id>{entry.ref}</Id>
          </a>
        ) : (
          entry.ref && <Id>{entry.ref}</Id>
        )}
        {entry.refundOf !== null && <span class="sub">gives back entry {entry.refundOf}</span>}
        {entry.takeBackOf !== null && <span class="sub">takes back entry {entry.takeBackOf}</span>}
      </>
    ),
  },
  { head: "Free", numeric: true, cell: (entry) => <Delta of={entry} field="freeDelta" /> },
  { head: "Held", numeric: true, cell: (entry) => <Delta of={entry} field="heldDelta" /> },
  { head: "Charged", numeric: true, cell: (entry) => <Delta of={entry} field="spentDelta" /> },
];

function Delta({
  of: entry,
  field,
}: {
  of: LedgerEntry;
  field: "freeDelta" | "heldDelta" | "spentDelta";
}) {
  const value = entry[field];
  if (Number(value) === 0) return <span class="muted">–</span>;
  return (
    <>
      {Number(value) > 0 && "+"}
      <Amount unit={entry.unit} value={value} exact />
    </>
  );
}

/** The first moment of a day of the form (UTC). "" where the reader chose none. */
const dayTime = (day: string, plusDays = 0) =>
  day === "" ? "" : new Date(Date.parse(day) + plusDays * 86_400_000).toISOString();

/** Streams all entries, the newest first, however many there are. */
function Download({ path }: { path: string }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const link = (format: string, label: string) => (
    <a
      class="button"
      href={`${path}/entries/export${queryOf({ format, from: dayTime(from), to: dayTime(to, 1) })}`}
      download={`entries.${format}`}
    >
      Download {label}
    </a>
  );
  return (
    <div class="filters">
      <TextField label="From (UTC)" type="date" value={from} onValue={setFrom} />
      <TextField label="To the end of (UTC)" type="date" value={to} onValue={setTo} />
      {link("csv", "CSV")}
      {link("jsonl", "JSON lines")}
    </div>
  );
}

/** All entries of the account, and a file of the changes of its balances. */
export function AccountLedger({
  path,
  onRefund,
  onTakeBack,
}: {
  path: string;
  onRefund(entry: LedgerEntry): void;
  onTakeBack(entry: LedgerEntry): void;
}) {
  const pages = usePages();
  const loaded = useApi<AdminList<LedgerEntry>>(
    `${path}/entries${queryOf({ after: pages.after, limit: 25 })}`,
  );
  const rows = loaded.data?.data;
  // A charge is given back once. A refund is newer than its charge, so it is on the same page or an earlier one.
  const isRefunded = ({ unit, number }: LedgerEntry) =>
    rows?.some((one) => one.unit === unit && one.refundOf === number);
  const actions: Column<LedgerEntry> = {
    head: "Actions",
    isActions: true,
    cell: (entry) => (
      <>
        {Number(entry.spentDelta) > 0 && !isRefunded(entry) && (
          <button type="button" class="small" onClick={() => onRefund(entry)}>
            Refund
          </button>
        )}
        {entry.kind === "grant" && entry.takeBackOf === null && (
          <button type="button" class="small" onClick={() => onTakeBack(entry)}>
            Take back
          </button>
        )}
      </>
    ),
  };
  return (
    <>
      <Download path={path} />
      <Table
        caption="Entries of the account's ledger"
        columns={[...columns, actions]}
        loaded={loaded}
        rowsOf={rows}
        keyOf={(entry) => `${entry.unit}-${entry.number}`}
        empty={
          <Empty title="No entries yet">
            <p>Grant the account money: with a balance of zero its requests are refused.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
    </>
  );
}
