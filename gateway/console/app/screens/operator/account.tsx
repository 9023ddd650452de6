import { useState } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import { call } from "../../api.ts";
import { useAction, useApi, useFilters } from "../../hooks.ts";
import { Segments } from "../../kit/form.tsx";
import { Page } from "../../kit/page.tsx";
import { ErrorText, Notice, Waiting } from "../../kit/states.tsx";
import { toast } from "../../kit/toast.tsx";
import { Credits, Id, Money, Status, When } from "../../kit/values.tsx";
import { AlertForm } from "../alert-form.tsx";
import { CloseAccount, Refund, SuspendAccount, TakeBack, TopUp } from "./account-dialogs.tsx";
import { AccountLedger } from "./account-ledger.tsx";
import { AccountSettings, EditAccount } from "./account-settings.tsx";
import { AccountWebhooks } from "./account-webhooks.tsx";
import { type AccountInFull, type AdminAlerts, admin, type LedgerEntry } from "./types.ts";

type Open =
  | { dialog: "top-up" | "edit" | "close" | "suspend" }
  | { dialog: "refund" | "take-back"; entry: LedgerEntry }
  | null;

const tabs = [
  { value: "ledger", label: "Ledger" },
  { value: "webhooks", label: "Webhooks" },
  { value: "alerts", label: "Alerts" },
];

/** One account: its wallets, its actions, its ledger, and its alerts and webhooks. */
export function OneAccount() {
  const { query, set } = useFilters();
  const tab = tabs.find(({ value }) => value === query.tab)?.value ?? "ledger";
  const id = useRoute().params.id ?? "";
  const path = `${admin}/accounts/${encodeURIComponent(id)}`;
  const loaded = useApi<AccountInFull>(path);
  const [open, setOpen] = useState<Open>(null);
  // Counts the changes of money. Each makes the list of entries again.
  const [changes, setChanges] = useState(0);
  const resume = useAction(async () => {
    const changed = await call<AccountInFull>(`${path}/resume`, { method: "POST", body: {} });
    loaded.set(() => changed);
    toast("The account is active.");
  });
  const done = () => {
    setOpen(null);
    setChanges(changes + 1);
    loaded.reload();
  };
  const account = loaded.data;
  const isOpen = account?.state === "active" || account?.state === "suspended";
  return (
    <Page
      title={account?.name || "Account"}
      lead={<Id>{id}</Id>}
      actions={
        account &&
        isOpen && (
          <>
            <button type="button" class="primary" onClick={() => setOpen({ dialog: "top-up" })}>
              Grant
            </button>
            <button type="button" onClick={() => setOpen({ dialog: "edit" })}>
              Edit
            </button>
            <button
              type="button"
              disabled={resume.isBusy}
              onClick={() =>
                account.state === "active" ? setOpen({ dialog: "suspend" }) : resume.run()
              }
            >
              {account.state === "active" ? "Suspend" : "Resume"}
            </button>
            <button type="button" class="danger-text" onClick={() => setOpen({ dialog: "close" })}>
              Close
            </button>
          </>
        )
      }
    >
      <ErrorText error={loaded.error} retry={loaded.reload} />
      <ErrorText error={resume.error} />
      {!account && !loaded.error && <Waiting lines={4} />}
      {account && <Facts account={account} />}
      {account && (
        <div class="filters">
          <Segments
            label="Part"
            value={tab}
            onValue={(value) => set({ tab: value === "ledger" ? undefined : value })}
            choices={tabs}
          />
        </div>
      )}
      {account && tab === "ledger" && (
        <AccountLedger
          key={changes}
          path={path}
          onRefund={(entry) => setOpen({ dialog: "refund", entry })}
          onTakeBack={(entry) => setOpen({ dialog: "take-back", entry })}
        />
      )}
      {account && tab === "webhooks" && <AccountWebhooks path={path} />}
      {account && tab === "alerts" && <AccountAlerts path={path} mayChange={isOpen} />}
      {account && open?.dialog === "top-up" && (
        <TopUp account={account} onClose={() => setOpen(null)} onDone={done} />
      )}
      {account && open?.dialog === "edit" && (
        <EditAccount account={account} onClose={() => setOpen(null)} onDone={done} />
      )}
      {account && open?.dialog === "suspend" && (
        <SuspendAccount account={account} onClose={() => setOpen(null)} onDone={done} />
      )}
      {account && open?.dialog === "close" && (
        <CloseAccount account={account} onClose={() => setOpen(null)} onDone={done} />
      )}
      {account && open?.dialog === "refund" && (
        <Refund account={account} entry={open.entry} onClose={() => setOpen(null)} onDone={done} />
      )}
      {account && open?.dialog === "take-back" && (
        <TakeBack
          account={account}
          entry={open.entry}
          onClose={() => setOpen(null)}
          onDone={done}
        />
      )}
    </Page>
  );
}

function Facts({ account }: { account: AccountInFull }) {
  const { usdMicros, credits, id } = account;
  const of = `account=${encodeURIComponent(id)}`;
  return (
    <div class="stack">
      {account.state === "suspended" && (
        <Notice tone="warn">
          Suspended since <When at={account.suspendedAt} />: its keys may only read. Running
          requests and jobs go on, and are charged.
        </Notice>
      )}
      <dl class="figures">
        <div class="figure">
          <dt>State</dt>
          <dd class="fine">
            <Status of="account" value={account.state} />
          </dd>
          <dd class="fine muted">
            made <When at={account.createdAt} style="day" />
          </dd>
        </div>
        {usdMicros && (
          <>
            <div class="figure">
              <dt>Dollars</dt>
              <dd>
                <Money micros={usdMicros.available} />
              </dd>
              <dd class="fine muted">
                <Money micros={usdMicros.reserved} /> held
              </dd>
            </div>
            <div class="figure">
              <dt>Dollars charged</dt>
              <dd>
                <Money micros={usdMicros.spent} />
              </dd>
              <dd class="fine muted">
                <Money micros={usdMicros.monthSpent} /> this month
              </dd>
            </div>
          </>
        )}
        {credits && (
          <>
            <div class="figure">
              <dt>Credits</dt>
              <dd>
                <Credits value={credits.available} />
              </dd>
              <dd class="fine muted">
                <Credits value={credits.reserved} /> held
              </dd>
            </div>
            <div class="figure">
              <dt>Credits charged</dt>
              <dd>
                <Credits value={credits.spent} />
              </dd>
              <dd class="fine muted">
                <Credits value={credits.monthSpent} /> this month
              </dd>
            </div>
          </>
        )}
      </dl>
      <AccountSettings account={account} />
      <p class="row">
        <a href={`/console/operator/keys?${of}`}>Its keys</a>
        <a href={`/console/operator/requests?${of}`}>Its requests</a>
        <a href={`/console/operator/jobs?${of}`}>Its jobs</a>
        <a href={`/console/operator/holds?${of}`}>Its holds</a>
        <a href={`/console/operator/ledger?${of}`}>Audit its ledger</a>
        <a href={`/console/operator/audit?${of}`}>Its changes</a>
      </p>
    </div>
  );
}

interface AlertsProps {
  path: string;
  /** False for an account that is closed. */
  mayChange: boolean;
}

/** The balance at which an account gets an alert of low funds, and the alert's address. */
function AccountAlerts({ path, mayChange }: AlertsProps) {
  const { data, error, reload } = useApi<AdminAlerts>(`${path}/alerts`);
  const limit = data?.lowBalanceUsdMicros ?? null;
  return (
    <>
      <ErrorText error={error} retry={reload} />
      {!data && !error && <Waiting lines={3} />}
      {data && (
        <AlertForm
          path={`${path}/alerts`}
          lowBalanceUsdMicros={limit === null ? null : Number(limit)}
          webhookUrl={data.webhookUrl}
          mayChange={mayChange}
          webhookHint="It gets alerts of the balance, and of limits of keys without a webhook. Empty: no alert is sent."
        />
      )}
    </>
  );
}
