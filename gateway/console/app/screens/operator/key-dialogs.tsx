import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { useApi } from "../../hooks.ts";
import { Dialog, FormDialog } from "../../kit/dialog.tsx";
import { dollarsOf, microsOf } from "../../kit/dollars-field.tsx";
import { Checks, Select, TextField } from "../../kit/form.tsx";
import type { NewSecret } from "../../kit/secret-once.tsx";
import { ErrorText, Waiting } from "../../kit/states.tsx";
import { toast } from "../../kit/toast.tsx";
import { resetOf } from "../../limit-resets.ts";
import { graces, implied, managing } from "../../scopes.ts";
import {
  BoundFields,
  emptyDraft,
  endOfDay,
  type KeyDraft,
  LowBalanceField,
} from "../key-fields.tsx";
import { type AdminKey, type AdminKeyInFull, admin, type Catalog } from "./types.ts";
import { WhatStops } from "./what-stops.tsx";

interface DialogProps {
  onClose(): void;
  onDone(made?: NewSecret): void;
}

type Made = AdminKey & { secret: string | null };

/** The bounds of a form. Undefined: the reader typed nothing. */
function boundsOf(draft: KeyDraft) {
  return {
    name: draft.name.trim() || undefined,
    scopes: draft.scopes.length === 0 ? undefined : draft.scopes,
    models: draft.models.length === 0 ? undefined : draft.models,
    limitUsdMicros: microsOf(draft.limitDollars),
    limit_reset: draft.limitDollars === "" ? undefined : resetOf(draft.limitReset),
    expiresAt: draft.expires === "" ? undefined : endOfDay(draft.expires),
    requestsPerMinute: draft.requestsPerMinute === "" ? undefined : Number(draft.requestsPerMinute),
    webhookUrl: draft.webhookUrl.trim() || undefined,
  };
}

export function CreateKey({ account, onClose, onDone }: DialogProps & { account: string }) {
  const [accountId, setAccountId] = useState(account);
  const [draft, setDraft] = useState(emptyDraft);
  return (
    <FormDialog
      title="Create a key"
      submit="Create key"
      wide
      onClose={onClose}
      onSubmit={async () => {
        const body = { accountId: accountId.trim(), ...boundsOf(draft) };
        const made = await call<Made>(`${admin}/keys`, { method: "POST", body });
        onDone({ name: made.name, secret: made.secret });
      }}
    >
      <TextField
        label="Account"
        placeholder="acct_…"
        required
        autoFocus
        value={accountId}
        onValue={setAccountId}
      />
      <KeyFields draft={draft} onDraft={setDraft} isNew />
    </FormDialog>
  );
}

/** Begins with the key's present values. A list does not show all of them. */
export function EditKey({ of: { id, name }, ...props }: DialogProps & { of: AdminKey }) {
  const loaded = useApi<AdminKeyInFull>(`${admin}/keys/${id}`);
  if (loaded.data) return <EditForm of={loaded.data} {...props} />;
  return (
    <Dialog title={`Edit ${name || "the key"}`} wide onClose={props.onClose}>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.error && <Waiting lines={6} />}
    </Dialog>
  );
}

function EditForm({ of: key, onClose, onDone }: DialogProps & { of: AdminKeyInFull }) {
  const limit = key.limitUsdMicros;
  const before: KeyDraft = {
    ...{ name: key.name, scopes: key.scopes, models: key.models },
    limitDollars: limit === null ? "" : dollarsOf(Number(limit)),
    limitReset: limit === null ? "monthly" : (key.limit_reset ?? "never"),
    expires: key.expires_at?.slice(0, 10) ?? "",
    requestsPerMinute: String(key.requestsPerMinute),
    webhookUrl: key.webhookUrl ?? "",
  };
  const lowBefore = key.lowBalanceUsdMicros === null ? "" : dollarsOf(+key.lowBalanceUsdMicros);
  const [draft, setDraft] = useState(before);
  const [low, setLow] = useState(lowBefore);
  return (
    <FormDialog
      title={`Edit ${key.name || "the key"}`}
      submit="Save changes"
      wide
      onClose={onClose}
      onSubmit={async () => {
        const isLowChanged = low !== lowBefore;
        const body = {
          ...changesOf(before, draft),
          ...(isLowChanged && { lowBalanceUsdMicros: microsOf(low) ?? null }),
        };
        if (Object.keys(body).length > 0) {
          await call(`${admin}/keys/${key.id}`, { method: "PATCH", body });
          toast("Saved. It is in force within a second.");
        }
        onDone();
      }}
    >
      <KeyFields draft={draft} onDraft={setDraft} />
      <LowBalanceField value={low} onValue={setLow} />
    </FormDialog>
  );
}

/** The changed fields. Null removes a bound. An empty list of scopes has the same meaning as in a new key. */
function changesOf(before: KeyDraft, draft: KeyDraft): Record<string, unknown> {
  const was: Record<string, unknown> = boundsOf(before);
  const isOther = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(was[name]);
  const changed = Object.entries(boundsOf(draft)).filter(isOther);
  const none: Record<string, unknown> = { scopes: implied };
  return Object.fromEntries(changed.map(([name, value]) => [name, value ?? none[name] ?? null]));
}

function KeyFields({
  draft,
  onDraft,
  isNew,
}: {
  draft: KeyDraft;
  onDraft(draft: KeyDraft): void;
  isNew?: boolean;
}) {
  const models = useApi<Catalog>(`${admin}/catalog`).data?.models ?? [];
  // A model that a key names may have left the catalog.
  const gone = draft.models.filter((id) => !models.some((model) => model.id === id));
  const set = (change: Partial<KeyDraft>) => onDraft({ ...draft, ...change });
  return (
    <>
      <TextField
        label="Name"
        required
        maxLength={200}
        value={draft.name}
        onValue={(name) => set({ name })}
      />
      <Checks
        legend="May use"
        hint={`None chosen: the first ${implied.length}. The others are for managing the account.`}
        choices={[...implied, ...managing]}
        chosen={draft.scopes}
        onChosen={(scopes) => set({ scopes })}
      />
      <Checks
        legend="Models"
        hint="None chosen: all models."
        choices={[...models.map(({ id, name }) => ({ value: id, label: name })), ...gone]}
        chosen={draft.models}
        onChosen={(models) => set({ models })}
      />
      <BoundFields
        draft={draft}
        onChange={set}
        limitHint="Empty: as far as the account's balance goes."
        expiresHint="Empty: it does not expire."
        rate={{ max: "1000000", ...(isNew ? { hint: "Empty: 3,000." } : { required: true }) }}
      />
    </>
  );
}

export function RotateKey({ of: key, onClose, onDone }: DialogProps & { of: AdminKey }) {
  const [grace, setGrace] = useState("86400");
  return (
    <FormDialog
      title={`Rotate ${key.name || "the key"}`}
      submit="Rotate key"
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<Made>(`${admin}/keys/${key.id}/rotate`, {
          method: "POST",
          body: { graceSeconds: Number(grace) },
        });
        onDone({ name: made.name, secret: made.secret });
      }}
    >
      <p>It gets a new secret under the same id, name and limits, which you hand to its owner.</p>
      <Select
        label="The old secret stops working"
        value={grace}
        onValue={setGrace}
        choices={graces}
      />
    </FormDialog>
  );
}

export function DisableKey({ of: key, onClose, onDone }: DialogProps & { of: AdminKey }) {
  return (
    <FormDialog
      title={`Disable ${key.name || "the key"}?`}
      submit="Disable key"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${admin}/keys/${key.id}`, { method: "PATCH", body: { disabled: true } });
        toast("It is refused within a second.");
        onDone();
      }}
    >
      <WhatStops accountId={key.accountId} keyId={key.id} />
      <p>You can enable the key again at any time.</p>
    </FormDialog>
  );
}

export function RevokeKey({ of: key, onClose, onDone }: DialogProps & { of: AdminKey }) {
  return (
    <FormDialog
      title={`Delete ${key.name || "the key"}?`}
      submit="Delete for good"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`${admin}/keys/${key.id}/revoke`, { method: "POST", body: {} });
        toast("The key is deleted.");
        onDone();
      }}
    >
      <WhatStops accountId={key.accountId} keyId={key.id} />
      <p>It is refused within a second, and cannot be brought back.</p>
    </FormDialog>
  );
}
