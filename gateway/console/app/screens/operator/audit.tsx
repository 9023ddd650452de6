import { queryOf } from "../../api.ts";
import { useApi, useFilters, usePages } from "../../hooks.ts";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { ShortId, Status, When } from "../../kit/values.tsx";
import { AccountLink } from "./account-link.tsx";
import { AccountFilter } from "./offered-filters.tsx";
import { type AdminList, type AuditRecord, admin } from "./types.ts";

const columns: Column<AuditRecord>[] = [
  { head: "Time", cell: (record) => <When at={record.createdAt} style="second" /> },
  { head: "Who", cell: (record) => <span class="break">{record.actor}</span> },
  {
    head: "What",
    cell: (record) => (
      <>
        {record.action}
        {Object.keys(record.details).length > 0 && (
          <span class="sub break">
            {Object.entries(record.details)
              .map(([name, value]) => `${name} ${plain(value)}`)
              .join(", ")}
          </span>
        )}
      </>
    ),
  },
  {
    head: "Of",
    cell: (record) => (
      <>
        {record.accountId && <AccountLink of={{ ...record, accountId: record.accountId }} />}
        {record.target && record.target !== record.accountId && (
          <span class="sub">
            <ShortId id={record.target} />
          </span>
        )}
      </>
    ),
  },
  {
    head: "Outcome",
    cell: (record) => (
      <>
        <Status of="act" value={record.outcome} />
        {record.reason && <span class="sub">{record.reason}</span>}
      </>
    ),
  },
];

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** The operators' changes, with their authors and times. */
export function AuditLog() {
  const { query, set } = useFilters();
  const pages = usePages();
  const loaded = useApi<AdminList<AuditRecord>>(
    `${admin}/audit${queryOf({ account: query.account, after: pages.after, limit: 25 })}`,
  );
  return (
    <Page title="Audit log" lead="Every change by an operator, newest first: who, what and when.">
      <div class="filters">
        <AccountFilter value={query.account ?? ""} onValue={(account) => set({ account })} />
      </div>
      <Table
        caption="Audit log"
        columns={columns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(record) => record.id}
        empty={
          <Empty title="Nothing was changed yet">
            <p>What operators do, here and on the command line, is written down here.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
    </Page>
  );
}
