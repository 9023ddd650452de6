import { useState } from "preact/hooks";
import { call, queryOf } from "../../api.ts";
import { useAction, useApi, useFilters, usePages } from "../../hooks.ts";
import { Page } from "../../kit/page.tsx";
import { SearchField } from "../../kit/search.tsx";
import { type NewSecret, SecretOnce } from "../../kit/secret-once.tsx";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { Money, ShortId, Status, When } from "../../kit/values.tsx";
import { periodWords } from "../../limit-resets.ts";
import { implied, rightsOf } from "../../scopes.ts";
import { AccountLink } from "./account-link.tsx";
import { CreateKey, DisableKey, EditKey, RevokeKey, RotateKey } from "./key-dialogs.tsx";
import { AccountFilter } from "./offered-filters.tsx";
import { type AdminKey, type AdminList, admin } from "./types.ts";

type Open =
  | { dialog: "create" }
  | { dialog: "edit" | "disable" | "rotate" | "revoke"; key: AdminKey }
  | null;

/** Keys of all accounts, the deleted ones too. */
export function OperatorKeys() {
  const { query, set } = useFilters();
  const pages = usePages();
  const { account } = query;
  const loaded = useApi<AdminList<AdminKey>>(
    `${admin}/keys${queryOf({ account, query: query.query, after: pages.after, limit: 25 })}`,
  );
  const [open, setOpen] = useState<Open>(null);
  const [secret, setSecret] = useState<NewSecret | null>(null);
  const close = () => setOpen(null);
  const done = (made?: NewSecret) => {
    close();
    if (made) setSecret(made);
    loaded.reload();
  };
  const enable = useAction(async ({ id }: AdminKey) => {
    const body = { disabled: false };
    const changed = await call<AdminKey>(`${admin}/keys/${id}`, { method: "PATCH", body });
    loaded.set((list) => ({
      ...list,
      data: list.data.map((one) => (one.id === changed.id ? changed : one)),
    }));
    toast("It may be used again.");
  });
  const actions: Column<AdminKey> = {
    head: "Actions",
    isActions: true,
    cell: (key) =>
      key.state !== "revoked" && (
        <>
          <button type="button" class="small" onClick={() => setOpen({ dialog: "edit", key })}>
            Edit
          </button>
          <button
            type="button"
            class="small"
            disabled={enable.isBusy}
            onClick={() =>
              key.state === "disabled" ? enable.run(key) : setOpen({ dialog: "disable", key })
            }
          >
            {key.state === "disabled" ? "Enable" : "Disable"}
          </button>
          <button type="button" class="small" onClick={() => setOpen({ dialog: "rotate", key })}>
            Rotate
          </button>
          <button
            type="button"
            class="small danger-text"
            onClick={() => setOpen({ dialog: "revoke", key })}
          >
            Delete
          </button>
        </>
      ),
  };
  return (
    <Page
      title="Keys"
      lead="Keys of all accounts. Their secrets are not shown here."
      actions={
        <button type="button" class="primary" onClick={() => setOpen({ dialog: "create" })}>
          Create a key
        </button>
      }
    >
      <div class="filters">
        <SearchField
          label="Find by name or id"
          value={query.query ?? ""}
          onSearch={(wanted) => set({ query: wanted })}
        />
        <AccountFilter value={account ?? ""} onValue={(value) => set({ account: value })} />
      </div>
      <ErrorText error={enable.error} />
      <Table
        caption="Keys"
        columns={[...columns, actions]}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(key) => key.id}
        empty={
          <Empty title="No such key">
            <p>Search for a part of a name, or the beginning of an id, or clear the filters.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
      {open?.dialog === "create" && (
        <CreateKey account={account ?? ""} onClose={close} onDone={done} />
      )}
      {open?.dialog === "edit" && <EditKey of={open.key} onClose={close} onDone={done} />}
      {open?.dialog === "disable" && <DisableKey of={open.key} onClose={close} onDone={done} />}
      {open?.dialog === "rotate" && <RotateKey of={open.key} onClose={close} onDone={done} />}
      {open?.dialog === "revoke" && <RevokeKey of={open.key} onClose={close} onDone={done} />}
      {secret && <SecretOnce made={secret} onClose={() => setSecret(null)} />}
    </Page>
  );
}

const columns: Column<AdminKey>[] = [
  {
    head: "Name",
    cell: (key) => (
      <>
        {key.name || "Without a name"}
        <span class="sub">
          <code>{key.label}</code>
        </span>
        <span class="sub">
          <ShortId id={key.id} />
        </span>
      </>
    ),
  },
  {
    head: "Account",
    cell: (key) => <AccountLink of={key} />,
  },
  { head: "State", cell: (key) => <Status of="key" value={key.state} /> },
  {
    head: "May use",
    cell: (key) => (
      <>
        {rightsOf(key.scopes.length === 0 ? implied : key.scopes)}
        <span class="sub">{key.models.join(", ") || "all models"}</span>
      </>
    ),
  },
  {
    head: "Limit",
    numeric: true,
    cell: (key) =>
      key.limitUsdMicros === null ? (
        <span class="muted">none</span>
      ) : (
        <>
          <Money micros={key.limitUsdMicros} />
          <span class="sub keep">{periodWords(key.limit_reset)}</span>
        </>
      ),
  },
  { head: "Last used", numeric: true, cell: (key) => <When at={key.lastUsedAt} style="ago" /> },
];

/** The address of a key among all. */
export function keyPath(id: string): string {
  return `/console/operator/keys?query=${encodeURIComponent(id)}`;
}
