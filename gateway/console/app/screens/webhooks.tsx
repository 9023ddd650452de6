import { useState } from "preact/hooks";
import { call, queryOf } from "../api.ts";
import { useAction, useApi, usePages } from "../hooks.ts";
import { CopyButton } from "../kit/copy.tsx";
import { Dialog, FormDialog } from "../kit/dialog.tsx";
import { Page } from "../kit/page.tsx";
import { Empty, ErrorText, Notice, Waiting } from "../kit/states.tsx";
import { type Column, Pager, Table } from "../kit/table.tsx";
import { toast } from "../kit/toast.tsx";
import { ShortId, Status, When } from "../kit/values.tsx";
import { may, session } from "../session.ts";
import type { List, Webhook, WebhookSecret } from "../types.ts";
import { attemptsOf, LastAnswer, sentAt } from "./webhook-cells.tsx";

const columns = (retry: (hook: Webhook) => void, isBusy: boolean): Column<Webhook>[] => [
  sentAt,
  {
    head: "Event",
    cell: (hook) => (
      <>
        {hook.type}
        {hook.jobId && (
          <span class="sub">
            <ShortId id={hook.jobId} />
          </span>
        )}
      </>
    ),
  },
  { head: "Receiver", cell: (hook) => <span class="break">{hook.url}</span> },
  { head: "Status", cell: (hook) => <Delivery of={hook} /> },
  {
    head: "Actions",
    isActions: true,
    cell: (hook) =>
      isOurs(hook) && (
        <button type="button" class="small" disabled={isBusy} onClick={() => retry(hook)}>
          Send again
        </button>
      ),
  },
];

/** May this key send the webhook again? */
function isOurs({ keyId }: Webhook): boolean {
  return may("webhooks") || keyId === undefined || keyId === session.value?.keyId;
}

function Delivery({ of: hook }: { of: Webhook }) {
  return (
    <>
      <Status of="delivery" value={hook.status} />
      <span class="sub">
        {attemptsOf(hook)}
        {hook.lastError && (
          <>
            {", the last: "}
            <LastAnswer of={hook} />
          </>
        )}
        {hook.status === "pending" && hook.nextAttemptAt && (
          <>
            {", next "}
            <When at={hook.nextAttemptAt} style="ago" />
          </>
        )}
      </span>
    </>
  );
}

export function Webhooks() {
  const hasSecret = may("webhooks");
  const seesAll = hasSecret || may("jobs:read-all");
  const pages = usePages();
  const loaded = useApi<List<Webhook>>(`/webhooks${queryOf({ cursor: pages.after, limit: 25 })}`);
  const [dialog, setDialog] = useState<"secret" | "rotate" | null>(null);
  const retry = useAction(async (hook: Webhook) => {
    const due = await call<Webhook>(`/webhooks/${hook.id}/retry`, { method: "POST" });
    loaded.set((list) => ({
      ...list,
      data: list.data.map((one) => (one.id === due.id ? due : one)),
    }));
    toast("It is sent again, with the same id.");
  });
  return (
    <Page
      title="Webhooks"
      lead={`Messages to the addresses of ${seesAll ? "the account's" : "this key's"} jobs, newest first, kept for 30 days.`}
      actions={
        hasSecret && (
          <>
            <button type="button" onClick={() => setDialog("secret")}>
              Show the secret
            </button>
            <button type="button" onClick={() => setDialog("rotate")}>
              Rotate the secret
            </button>
          </>
        )
      }
    >
      {!hasSecret && (
        <Notice>
          This key lacks the scope <code>webhooks</code>: it is not shown the secret that messages
          are signed with
          {seesAll ? ", and sends no other key's again" : ", nor what other keys' jobs sent"}.
        </Notice>
      )}
      <ErrorText error={retry.error} />
      <Table
        caption="Webhooks"
        columns={columns((hook) => retry.run(hook), retry.isBusy)}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(hook) => hook.id}
        empty={
          <Empty title="Nothing was sent yet">
            <p>
              Name a <code>webhookUrl</code> when you submit a job, or on{" "}
              <a href="/console/keys">a key</a> for all of its jobs: their ends are told there.
            </p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.nextCursor} />
      {dialog === "secret" && <ShowSecret onClose={() => setDialog(null)} />}
      {dialog === "rotate" && (
        <RotateSecret onClose={() => setDialog(null)} onDone={() => setDialog("secret")} />
      )}
    </Page>
  );
}

function ShowSecret({ onClose }: { onClose(): void }) {
  const { data, error, reload } = useApi<WebhookSecret>("/webhooks/secret");
  return (
    <Dialog title="The secret of your webhooks" onClose={onClose}>
      <div class="stack">
        <p>Give it to a library of Standard Webhooks, which checks each message by it.</p>
        <ErrorText error={error} retry={reload} />
        {!data && !error && <Waiting lines={1} />}
        {data && (
          <div class="secret">
            <code class="id">{data.secret}</code>
            <CopyButton text={data.secret} />
          </div>
        )}
        {data?.previousSecret && (
          <Notice>
            Messages are signed with the secret before, too, until{" "}
            <When at={data.previousExpiresAt} />.
          </Notice>
        )}
        <div class="dialog-actions">
          <button type="button" class="primary" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function RotateSecret({ onClose, onDone }: { onClose(): void; onDone(): void }) {
  // All attempts of this form use the same value, so that a repeat rotates nothing.
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title="Rotate the secret of your webhooks?"
      submit="Rotate secret"
      onClose={onClose}
      onSubmit={async () => {
        const headers = { "idempotency-key": idempotencyKey };
        await call("/webhooks/secret/rotate", { method: "POST", headers });
        onDone();
      }}
    >
      <p>
        For 24 hours each message is signed with both secrets: change your receivers within a day. A
        second rotation within that day ends the oldest of the three at once.
      </p>
    </FormDialog>
  );
}
