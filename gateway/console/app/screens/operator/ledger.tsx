import { useState } from "preact/hooks";
import { call, queryOf } from "../../api.ts";
import { count } from "../../format.ts";
import { useAction, useFilters } from "../../hooks.ts";
import { Amount } from "../../kit/amount.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty, ErrorText, Notice, Waiting } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { AccountLink } from "./account-link.tsx";
import { AccountFilter } from "./offered-filters.tsx";
import { admin, type LedgerAudit } from "./types.ts";

type Difference = LedgerAudit["differences"][number];

const columns: Column<Difference>[] = [
  {
    head: "Account",
    cell: (one) => <AccountLink of={one} />,
  },
  { head: "Field", cell: (one) => one.field },
  { head: "Entry", numeric: true, cell: (one) => one.entry ?? "–" },
  {
    head: "Recorded",
    numeric: true,
    cell: (one) => <Amount unit={one.unit} value={one.recorded} exact />,
  },
  {
    head: "Computed",
    numeric: true,
    cell: (one) => <Amount unit={one.unit} value={one.computed} exact />,
  },
];

/** Reads the whole ledger, so it starts only when the operator asks for it. */
export function Ledger() {
  const { query, set } = useFilters();
  const [audit, setAudit] = useState<LedgerAudit | null>(null);
  const action = useAction(async () => {
    setAudit(null);
    setAudit(await call(`${admin}/ledger/audit${queryOf({ account: query.account })}`));
  });
  return (
    <Page
      title="Ledger audit"
      lead="Adds up every entry and compares with the balances. On a large ledger it takes minutes."
    >
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <AccountFilter value={query.account ?? ""} onValue={(account) => set({ account })} />
        <button type="submit" class="primary" disabled={action.isBusy}>
          {action.isBusy ? "Auditing…" : "Audit now"}
        </button>
      </form>
      <ErrorText error={action.error} />
      {action.isBusy && <Waiting />}
      {!audit && !action.isBusy && !action.error && (
        <Empty title="No audit yet">
          <p>Press “Audit now”. The audit only reads, and requests go on.</p>
        </Empty>
      )}
      {audit?.ok && (
        <Notice tone="good">
          <strong>Every balance is the sum of its entries.</strong>
          <p>
            {count(audit.wallets)} wallets and {count(audit.entries)} entries were read.
          </p>
        </Notice>
      )}
      {audit && !audit.ok && (
        <div class="stack">
          <Notice tone="warn">
            <strong>
              {audit.more ? "More than " : ""}
              {count(audit.differences.length)} differences
            </strong>
            <p>
              in {count(audit.wallets)} wallets and {count(audit.entries)} entries. Nothing was
              changed.
            </p>
          </Notice>
          <Table
            caption="Differences"
            columns={columns}
            loaded={{ error: undefined, isLoading: false, reload: () => action.run() }}
            rowsOf={audit.differences}
            keyOf={(one) => `${one.accountId}-${one.unit}-${one.field}-${one.entry}`}
            empty={null}
          />
        </div>
      )}
    </Page>
  );
}
