// The webhooks of an account, on the operator's screen of the account.

import { call, queryOf } from "../../api.ts";
import { useAction, useApi, usePages } from "../../hooks.ts";
import { Empty, ErrorText } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { ShortId, Status, When } from "../../kit/values.tsx";
import { attemptsOf, LastAnswer, sentAt } from "../webhook-cells.tsx";
import { type AdminList, type AdminWebhook, admin } from "./types.ts";

const columns: Column<AdminWebhook>[] = [
  sentAt,
  {
    head: "Event",
    cell: (hook) => (
      <>
        {hook.type}
        {hook.jobId && (
          <span class="sub">
            <a href={`/console/operator/jobs?id=${encodeURIComponent(hook.jobId)}`}>
              <ShortId id={hook.jobId} />
            </a>
          </span>
        )}
      </>
    ),
  },
  {
    head: "Status",
    cell: (hook) => (
      <>
        <Status of="delivery" value={hook.status} />
        <span class="sub">{attemptsOf(hook)}</span>
      </>
    ),
  },
  { head: "Answer", cell: (hook) => <LastAnswer of={hook} /> },
  {
    head: "Next attempt",
    numeric: true,
    cell: (hook) => <When at={hook.nextAttemptAt} style="second" never="–" />,
  },
];

/** The webhooks of an account, without the addresses, which may hold secrets of their receivers. */
export function AccountWebhooks({ path }: { path: string }) {
  const pages = usePages();
  const loaded = useApi<AdminList<AdminWebhook>>(
    `${path}/webhooks${queryOf({ after: pages.after, limit: 25 })}`,
  );
  const retry = useAction(async ({ id }: AdminWebhook) => {
    const due = await call<AdminWebhook>(`${admin}/webhooks/${id}/retry`, {
      ...{ method: "POST", body: {} },
    });
    loaded.set((list) => ({
      ...list,
      data: list.data.map((one) => (one.id === due.id ? due : one)),
    }));
    toast("It is sent again, with the same id.");
  });
  const actions: Column<AdminWebhook> = {
    head: "Actions",
    isActions: true,
    cell: (hook) => (
      <button type="button" class="small" disabled={retry.isBusy} onClick={() => retry.run(hook)}>
        Send again
      </button>
    ),
  };
  return (
    <>
      <ErrorText error={retry.error} />
      <Table
        caption="Webhooks of the account"
        columns={[...columns, actions]}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(hook) => hook.id}
        empty={
          <Empty title="Nothing was sent yet">
            <p>The ends of jobs that name an address are told there, and the account’s alerts.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
    </>
  );
}
