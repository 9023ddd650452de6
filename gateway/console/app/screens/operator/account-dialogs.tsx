import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { Amount } from "../../kit/amount.tsx";
import { FormDialog } from "../../kit/dialog.tsx";
import { DollarsField, microsOf } from "../../kit/dollars-field.tsx";
import { TextField } from "../../kit/form.tsx";
import { toast } from "../../kit/toast.tsx";
import { type Account, admin, type LedgerEntry } from "./types.ts";
import { WhatStops } from "./what-stops.tsx";

interface DialogProps {
  account: Account;
  onClose(): void;
  onDone(): void;
}

const pathOf = (account: Account) => `${admin}/accounts/${encodeURIComponent(account.id)}`;
const nameOf = (account: Account) => account.name || account.id;

export function TopUp({ account, onClose, onDone }: DialogProps) {
  const [dollars, setDollars] = useState("");
  const [credits, setCredits] = useState("");
  // All attempts of this form use the same value, so that a lost answer grants nothing twice.
  const [operationId] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title={`Top up ${nameOf(account)}`}
      submit="Top up"
      onClose={onClose}
      onSubmit={async () => {
        await call(`${pathOf(account)}/top-up`, {
          method: "POST",
          body: {
            operationId,
            usdMicros: microsOf(dollars),
            credits: credits === "" ? undefined : Number(credits),
          },
        });
        toast("The balance is topped up.");
        onDone();
      }}
    >
      <div class="two">
        <DollarsField
          label="Dollars"
          value={dollars}
          onValue={setDollars}
          required={credits === ""}
        />
        <TextField
          label="Credits"
          type="number"
          min="1"
          step="1"
          value={credits}
          onValue={setCredits}
        />
      </div>
    </FormDialog>
  );
}

export function Refund({ account, entry, onClose, onDone }: DialogProps & { entry: LedgerEntry }) {
  const isMoney = entry.unit === "usd_micros";
  const [amount, setAmount] = useState("");
  const [operationId] = useState(() => crypto.randomUUID());
  const part = isMoney ? microsOf(amount) : amount === "" ? undefined : Number(amount);
  const field = {
    label: isMoney ? "Dollars to give back" : "Credits to give back",
    hint: "Empty: all of it.",
    value: amount,
    onValue: setAmount,
  };
  return (
    <FormDialog
      title={`Refund entry ${entry.number}`}
      submit="Give back"
      onClose={onClose}
      onSubmit={async () => {
        const body = {
          unit: entry.unit,
          entry: entry.number,
          operationId,
          ...(part !== undefined && { amount: part }),
        };
        await call(`${pathOf(account)}/refund`, { method: "POST", body });
        toast("It is given back.");
        onDone();
      }}
    >
      <p>
        It charged <Amount unit={entry.unit} value={entry.spentDelta} exact /> and can be given back
        once, in all or in part.
      </p>
      {isMoney ? (
        <DollarsField {...field} />
      ) : (
        <TextField type="number" min="1" step="1" {...field} />
      )}
    </FormDialog>
  );
}

export function SuspendAccount({ account, onClose, onDone }: DialogProps) {
  return (
    <FormDialog
      title={`Suspend ${nameOf(account)}?`}
      submit="Suspend account"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${pathOf(account)}/suspend`, { method: "POST", body: {} });
        toast("The account may only read from now on.");
        onDone();
      }}
    >
      <WhatStops accountId={account.id} />
      <p>Its keys may still read. You can resume the account at any time.</p>
    </FormDialog>
  );
}

export function CloseAccount({ account, onClose, onDone }: DialogProps) {
  const [typed, setTyped] = useState("");
  return (
    <FormDialog
      title={`Close ${nameOf(account)} for good?`}
      submit="Close account"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${pathOf(account)}/close`, { method: "POST", body: { confirm: typed.trim() } });
        toast("The account is being closed.");
        onDone();
      }}
    >
      <WhatStops accountId={account.id} />
      <p>
        All its keys are revoked, its prompts, files and names are erased at once. Its ledger stays,
        with ids alone. This cannot be undone.
      </p>
      <TextField
        label="Type the account's id to confirm"
        hint={<code>{account.id}</code>}
        required
        value={typed}
        onValue={setTyped}
      />
    </FormDialog>
  );
}
