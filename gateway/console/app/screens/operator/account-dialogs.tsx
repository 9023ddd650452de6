import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { Amount } from "../../kit/amount.tsx";
import { FormDialog } from "../../kit/dialog.tsx";
import { DollarsField, microsOf } from "../../kit/dollars-field.tsx";
import { Checkbox, TextField } from "../../kit/form.tsx";
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
      title={`Grant to ${nameOf(account)}`}
      submit="Grant"
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
        toast("The grant is in the balance.");
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

/** The field for a part of an entry, and the body that names it. */
function usePartOf(entry: LedgerEntry, verb: string, hint: string) {
  const isMoney = entry.unit === "usd_micros";
  const [amount, setAmount] = useState("");
  const [operationId] = useState(() => crypto.randomUUID());
  const part = isMoney ? microsOf(amount) : amount === "" ? undefined : Number(amount);
  const label = `${isMoney ? "Dollars" : "Credits"} to ${verb} back`;
  const field = { label, hint, value: amount, onValue: setAmount };
  return {
    body: {
      ...{ unit: entry.unit, entry: entry.number, operationId },
      ...(part !== undefined && { amount: part }),
    },
    field: isMoney ? (
      <DollarsField {...field} />
    ) : (
      <TextField type="number" min="1" step="1" {...field} />
    ),
  };
}

export function Refund({ account, entry, onClose, onDone }: DialogProps & { entry: LedgerEntry }) {
  const { body, field } = usePartOf(entry, "give", "Empty: all of it.");
  return (
    <FormDialog
      title={`Refund entry ${entry.number}`}
      submit="Give back"
      onClose={onClose}
      onSubmit={async () => {
        await call(`${pathOf(account)}/refund`, { method: "POST", body });
        toast("It is given back.");
        onDone();
      }}
    >
      <p>
        It charged <Amount unit={entry.unit} value={entry.spentDelta} exact /> and can be given back
        once, in all or in part.
      </p>
      {field}
    </FormDialog>
  );
}

export function TakeBack({
  account,
  entry,
  onClose,
  onDone,
}: DialogProps & { entry: LedgerEntry }) {
  const { body, field } = usePartOf(entry, "take", "Empty: all that is left of it.");
  const [upTo, setUpTo] = useState(false);
  const free = (entry.unit === "credits" ? account.credits : account.usdMicros)?.spendable;
  return (
    <FormDialog
      title={`Take entry ${entry.number} back`}
      submit="Take back"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${pathOf(account)}/take-back`, { method: "POST", body: { ...body, upTo } });
        toast("It is taken back.");
        onDone();
      }}
    >
      <p>
        It added <Amount unit={entry.unit} value={entry.freeDelta} exact />.
        {free !== undefined && (
          <>
            {" "}
            The account has <Amount unit={entry.unit} value={free} exact /> free. Held or charged
            money cannot be taken.
          </>
        )}
      </p>
      {field}
      <Checkbox checked={upTo} onChecked={setUpTo} label="Where less is free, take what there is" />
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
        All its keys are deleted, and its prompts, files and names are erased at once. Its ledger
        stays, with ids alone. This cannot be undone.
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
