import { useState } from "preact/hooks";
import { call, queryOf } from "../api.ts";
import { useAction, useApi, useFilters } from "../hooks.ts";
import { Checkbox } from "../kit/form.tsx";
import { Page } from "../kit/page.tsx";
import { type NewSecret, SecretOnce } from "../kit/secret-once.tsx";
import { Empty, ErrorText } from "../kit/states.tsx";
import { type Column, Pager, Table } from "../kit/table.tsx";
import { toast } from "../kit/toast.tsx";
import { Money, Status, When } from "../kit/values.tsx";
import { periodWords } from "../limit-resets.ts";
import { rightsOf } from "../scopes.ts";
import { session } from "../session.ts";
import type { Key, List } from "../types.ts";
import { CreateKey, EditKey, RevokeKey, RotateKey } from "./key-dialogs.tsx";

/** `GET /keys` pages by offset. The console asks for one key more than a page, to learn whether another page follows. */
const pageSize = 25;

type Open = { dialog: "create" } | { dialog: "edit" | "rotate" | "revoke"; key: Key } | null;

export function Keys() {
  const { query, set } = useFilters();
  const offset = Number(query.after ?? 0);
  const withDisabled = query.disabled !== "no";
  const loaded = useApi<List<Key>>(
    `/keys${queryOf({ limit: pageSize + 1, offset, include_disabled: withDisabled })}`,
  );
  const [open, setOpen] = useState<Open>(null);
  const [secret, setSecret] = useState<NewSecret | null>(null);
  const close = () => setOpen(null);
  const turnOn = useAction(async (key: Key) => {
    await call(`/keys/${key.id}`, { method: "PATCH", body: { disabled: !key.disabled } });
    toast(key.disabled ? "The key may be used again." : "The key is refused from now on.");
    loaded.reload();
  });
  const done = (made?: NewSecret) => {
    close();
    // The list is not reloaded yet. If the key of this very session was rotated, a request ends the session and leaves the page.
    if (made) setSecret(made);
    else loaded.reload();
  };
  const closeSecret = () => {
    setSecret(null);
    loaded.reload();
  };
  const columns: Column<Key>[] = [
    { head: "Name", cell: (key) => <NameCell keyOf={key} /> },
    { head: "May use", cell: (key) => <Rights keyOf={key} /> },
    { head: "Charged", cell: (key) => <Charged keyOf={key} />, numeric: true },
    { head: "Last used", cell: (key) => <When at={key.lastUsedAt} style="ago" />, numeric: true },
    {
      head: "Actions",
      isActions: true,
      cell: (key) => (
        <>
          <button type="button" class="small" onClick={() => setOpen({ dialog: "edit", key })}>
            Edit
          </button>
          <button type="button" class="small" onClick={() => setOpen({ dialog: "rotate", key })}>
            Rotate
          </button>
          <button
            type="button"
            class="small"
            disabled={turnOn.isBusy}
            onClick={() => turnOn.run(key)}
          >
            {key.disabled ? "Enable" : "Disable"}
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
    },
  ];
  const rows = loaded.data?.data.slice(0, pageSize);
  const hasMore = (loaded.data?.data.length ?? 0) > pageSize;
  return (
    <Page
      title="Keys"
      lead="One key for each application, with only the scopes that it needs."
      actions={
        <button type="button" class="primary" onClick={() => setOpen({ dialog: "create" })}>
          Create a key
        </button>
      }
    >
      <div class="filters">
        <Checkbox
          label="Show disabled keys"
          checked={withDisabled}
          onChecked={(checked) => set({ disabled: checked ? undefined : "no" })}
        />
      </div>
      <ErrorText error={turnOn.error} />
      <Table
        caption="Keys of the account"
        columns={columns}
        loaded={loaded}
        rowsOf={rows}
        keyOf={(key) => key.id}
        empty={
          <Empty title="No keys here">
            <p>Create one for your first application; its secret is shown once.</p>
          </Empty>
        }
      />
      <Pager
        pages={{
          next: (cursor) => set({ after: cursor }),
          previous:
            offset === 0
              ? undefined
              : () => set({ after: offset > pageSize ? String(offset - pageSize) : undefined }),
        }}
        nextCursor={hasMore ? String(offset + pageSize) : null}
      />
      {open?.dialog === "create" && <CreateKey onClose={close} onDone={done} />}
      {open?.dialog === "edit" && <EditKey of={open.key} onClose={close} onDone={done} />}
      {open?.dialog === "rotate" && <RotateKey of={open.key} onClose={close} onDone={done} />}
      {open?.dialog === "revoke" && <RevokeKey of={open.key} onClose={close} onDone={done} />}
      {secret && <SecretOnce made={secret} onClose={closeSecret} />}
    </Page>
  );
}

function isOver({ expires_at }: Key): boolean {
  return Boolean(expires_at) && Date.parse(String(expires_at)) <= Date.now();
}

function NameCell({ keyOf: key }: { keyOf: Key }) {
  return (
    <>
      <span class="row">
        {key.name || "Without a name"}
        {key.disabled && <Status of="key" value="disabled" />}
        {isOver(key) && <Status of="key" value="expired" />}
        {key.id === session.value?.keyId && <Status of="key" value="this_session" />}
      </span>
      <span class="sub">
        <code>{key.label ?? key.id}</code>
        {key.expires_at && (
          <>
            {" · expires "}
            <When at={key.expires_at} style="utcDay" />
          </>
        )}
      </span>
    </>
  );
}

function Rights({ keyOf: key }: { keyOf: Key }) {
  return (
    <>
      {rightsOf(key.scopes)}
      <span class="sub">{key.models ? key.models.join(", ") : "all models"}</span>
    </>
  );
}

/** The charges that count in the limit's period. A key without a limit shows those of this month. */
function Charged({ keyOf: key }: { keyOf: Key }) {
  const limit = key.limitUsdMicros;
  if (limit === null || limit === undefined) {
    return (
      <>
        <Money micros={key.spentMonthUsdMicros ?? 0} />
        <span class="sub">this month</span>
      </>
    );
  }
  const spent = limitedSpend(key);
  return (
    <>
      <Money micros={spent} />
      <span class="sub keep">
        of <Money micros={limit} /> {periodWords(key.limit_reset)}
      </span>
      <meter
        min={0}
        max={Math.max(limit, 1)}
        low={limit * 0.8}
        high={limit * 0.95}
        optimum={0}
        value={spent}
        aria-label="Charged of the limit"
      />
    </>
  );
}

/** The charges that count against the limit. Dollars of the API are exact to the micro. */
function limitedSpend(key: Key): number {
  if (key.limit_reset === "monthly") return key.spentMonthUsdMicros ?? 0;
  if (!key.limit_reset) return key.spentUsdMicros ?? 0;
  const dollars = key.limit_reset === "daily" ? key.usage_daily : key.usage_weekly;
  return Math.round((dollars ?? 0) * 1_000_000);
}
