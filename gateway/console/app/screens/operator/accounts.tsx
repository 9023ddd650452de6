// The operator's screen of all accounts.

import { useState } from "preact/hooks";
import { call, queryOf } from "../../api.ts";
import { useApi, useFilters, usePages } from "../../hooks.ts";
import { FormDialog } from "../../kit/dialog.tsx";
import { DollarsField, microsOf } from "../../kit/dollars-field.tsx";
import { TextField } from "../../kit/form.tsx";
import { Page } from "../../kit/page.tsx";
import { SearchField } from "../../kit/search.tsx";
import { type NewSecret, SecretOnce } from "../../kit/secret-once.tsx";
import { Empty } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { Credits, Money, Status, When } from "../../kit/values.tsx";
import { type Account, type AdminList, admin } from "./types.ts";

const columns: Column<Account>[] = [
  {
    head: "Name",
    cell: (account) => (
      <>
        <a href={accountPath(account.id)}>{account.name || "Without a name"}</a>
        <span class="sub">
          <code>{account.id}</code>
        </span>
      </>
    ),
  },
  { head: "State", cell: (account) => <Status of="account" value={account.state} /> },
  {
    head: "Dollars",
    numeric: true,
    cell: ({ usdMicros }) =>
      usdMicros && (
        <>
          <Money micros={usdMicros.available} />
          <span class="sub">
            <Money micros={usdMicros.monthSpent} /> this month
          </span>
        </>
      ),
  },
  {
    head: "Credits",
    numeric: true,
    cell: ({ credits }) =>
      credits && (
        <>
          <Credits value={credits.available} />
          <span class="sub">
            <Credits value={credits.monthSpent} /> this month
          </span>
        </>
      ),
  },
  { head: "Made", numeric: true, cell: (account) => <When at={account.createdAt} style="day" /> },
];

export function accountPath(id: string): string {
  return `/console/operator/accounts/${encodeURIComponent(id)}`;
}

export function Accounts() {
  const { query, set } = useFilters();
  const pages = usePages();
  const loaded = useApi<AdminList<Account>>(
    `${admin}/accounts${queryOf({ query: query.query, after: pages.after, limit: 25 })}`,
  );
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<NewSecret | null>(null);
  return (
    <Page
      title="Accounts"
      actions={
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          Make an account
        </button>
      }
    >
      <SearchField
        label="Find by name or id"
        placeholder="the beginning is enough"
        value={query.query ?? ""}
        onSearch={(wanted) => set({ query: wanted })}
      />
      <Table
        caption="Accounts"
        columns={columns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(account) => account.id}
        empty={
          <Empty title={query.query ? "No account begins like that" : "No accounts yet"}>
            <p>Make one: it gets a first key, whose secret is shown once.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
      {isMaking && (
        <MakeAccount
          onClose={() => setMaking(false)}
          onDone={(made) => {
            setMaking(false);
            setSecret(made);
            loaded.reload();
          }}
        />
      )}
      {secret && <SecretOnce made={secret} onClose={() => setSecret(null)} />}
    </Page>
  );
}

function MakeAccount({ onClose, onDone }: { onClose(): void; onDone(made: NewSecret): void }) {
  const [name, setName] = useState("");
  const [dollars, setDollars] = useState("");
  const [credits, setCredits] = useState("");
  // All attempts of this form use the same value, so that a lost answer makes no second account.
  const [operationId] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title="Make an account"
      submit="Make account"
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<Account & { firstKey: { secret: string | null } }>(
          `${admin}/accounts`,
          {
            method: "POST",
            body: {
              name: name.trim(),
              operationId,
              usdMicros: microsOf(dollars),
              credits: credits === "" ? undefined : Number(credits),
            },
          },
        );
        onDone({ name: `${made.name}’s first key`, secret: made.firstKey.secret });
      }}
    >
      <TextField label="Name" required autoFocus maxLength={200} value={name} onValue={setName} />
      <div class="two">
        <DollarsField label="Dollars to begin with" value={dollars} onValue={setDollars} />
        <TextField
          label="Credits to begin with"
          type="number"
          min="0"
          step="1"
          value={credits}
          onValue={setCredits}
        />
      </div>
    </FormDialog>
  );
}
