import { useState } from "preact/hooks";
import { call } from "../api.ts";
import { useApi } from "../hooks.ts";
import { FormDialog } from "../kit/dialog.tsx";
import { dollarsOf, microsOf } from "../kit/dollars-field.tsx";
import { Checks, Select, TextField } from "../kit/form.tsx";
import type { NewSecret } from "../kit/secret-once.tsx";
import { Notice } from "../kit/states.tsx";
import { toast } from "../kit/toast.tsx";
import { resetOf } from "../limit-resets.ts";
import { graces } from "../scopes.ts";
import { session } from "../session.ts";
import type { Key, List, Model } from "../types.ts";
import {
  BoundFields,
  emptyDraft,
  endOfDay,
  type KeyDraft,
  LowBalanceField,
} from "./key-fields.tsx";

interface DialogProps {
  onClose(): void;
  onDone(made?: NewSecret): void;
}

function bodyOf(draft: KeyDraft) {
  return {
    name: draft.name.trim(),
    scopes: draft.scopes,
    models: draft.models.length === 0 ? null : draft.models,
    limitUsdMicros: microsOf(draft.limitDollars) ?? null,
    ...(draft.limitDollars !== "" && { limit_reset: resetOf(draft.limitReset) }),
    webhookUrl: draft.webhookUrl.trim() || null,
    expiresAt: draft.expires === "" ? null : endOfDay(draft.expires),
    ...(draft.requestsPerMinute !== "" && { requestsPerMinute: Number(draft.requestsPerMinute) }),
  };
}

/** Empty fields are left out. The new key then has the value of the reader's own key, which cannot give more. */
function newKeyOf(draft: KeyDraft): Record<string, unknown> {
  return Object.fromEntries(Object.entries(bodyOf(draft)).filter(([, value]) => value !== null));
}

export function CreateKey({ onClose, onDone }: DialogProps) {
  const own = session.value;
  const [draft, setDraft] = useState<KeyDraft>({
    ...emptyDraft,
    // A key for an application. It has the scopes to generate, and none to manage.
    scopes: ["text", "images", "videos", "music", "speech", "files", "models"].filter((scope) =>
      own?.scopes.includes(scope),
    ),
  });
  // All attempts of this form use the same value, so that a lost answer makes no second key.
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title="Create a key"
      submit="Create key"
      wide
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<{ data: Key; key: string | null }>("/keys", {
          method: "POST",
          body: newKeyOf(draft),
          headers: { "idempotency-key": idempotencyKey },
        });
        onDone({ name: made.data.name, secret: made.key });
      }}
    >
      <KeyFields draft={draft} onDraft={setDraft} empty={asOwnKey} />
    </FormDialog>
  );
}

export function EditKey({ of: key, onClose, onDone }: DialogProps & { of: Key }) {
  const [low, setLow] = useState(dollarsOf(key.lowBalanceUsdMicros));
  const [draft, setDraft] = useState<KeyDraft>({
    name: key.name,
    scopes: key.scopes,
    models: key.models ?? [],
    limitDollars: dollarsOf(key.limitUsdMicros),
    limitReset: typeof key.limitUsdMicros === "number" ? (key.limit_reset ?? "never") : "monthly",
    webhookUrl: key.webhookUrl ?? "",
    expires: key.expires_at?.slice(0, 10) ?? "",
    requestsPerMinute: key.requestsPerMinute === undefined ? "" : String(key.requestsPerMinute),
  });
  return (
    <FormDialog
      title={`Edit ${key.name || "the key"}`}
      submit="Save changes"
      wide
      onClose={onClose}
      onSubmit={async () => {
        const isLowChanged = low !== dollarsOf(key.lowBalanceUsdMicros);
        const body = {
          ...changesOf(key, draft),
          ...(isLowChanged && { lowBalanceUsdMicros: microsOf(low) ?? null }),
        };
        await call(`/keys/${key.id}`, { method: "PATCH", body });
        toast("Saved. It is in force within a second.");
        onDone();
      }}
    >
      <KeyFields draft={draft} onDraft={setDraft} empty={unbounded} />
      <LowBalanceField value={low} onValue={setLow} />
    </FormDialog>
  );
}

/** Only the changed fields. So a reader may rename a key without the right to grant all its rights. */
function changesOf(key: Key, draft: KeyDraft): Record<string, unknown> {
  const after = bodyOf(draft);
  const isSameDay = (key.expires_at?.slice(0, 10) ?? "") === draft.expires;
  const before: Record<string, unknown> = {
    name: key.name,
    scopes: key.scopes,
    models: key.models,
    limitUsdMicros: key.limitUsdMicros ?? null,
    ...(typeof key.limitUsdMicros === "number" && { limit_reset: key.limit_reset ?? null }),
    webhookUrl: key.webhookUrl ?? null,
    expiresAt: isSameDay ? after.expiresAt : (key.expires_at ?? null),
    requestsPerMinute: key.requestsPerMinute,
  };
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );
}

/** The meaning of the fields of a key while they are empty. */
interface Empty {
  models: string;
  limit: string;
  expires: string;
}

const asOwnKey: Empty = {
  models: "None chosen: as your own key.",
  limit: "Empty: as your own key.",
  expires: "Empty: as your own key.",
};

const unbounded: Empty = {
  models: "None chosen: all models.",
  limit: "Empty: as far as the balance goes.",
  expires: "Empty: it does not expire.",
};

function KeyFields({
  draft,
  onDraft,
  empty,
}: {
  draft: KeyDraft;
  onDraft(draft: KeyDraft): void;
  empty: Empty;
}) {
  const models = useApi<List<Model>>("/models").data?.data ?? [];
  const set = (change: Partial<KeyDraft>) => onDraft({ ...draft, ...change });
  const scopes = [...new Set([...(session.value?.scopes ?? []), ...draft.scopes])];
  return (
    <>
      <TextField
        label="Name"
        hint="Which application uses it, e.g. “website” or “nightly batch”."
        required
        autoFocus
        maxLength={200}
        value={draft.name}
        onValue={(name) => set({ name })}
      />
      <Checks
        legend="May use"
        hint="Your own key's scopes: a key cannot give more than it has."
        choices={scopes}
        chosen={draft.scopes}
        onChosen={(scopes) => set({ scopes })}
      />
      <Checks
        legend="Models"
        hint={empty.models}
        choices={models.map((model) => ({ value: model.id, label: model.name }))}
        chosen={draft.models}
        onChosen={(models) => set({ models })}
      />
      <BoundFields
        draft={draft}
        onChange={set}
        limitHint={empty.limit}
        expiresHint={empty.expires}
        rate={{ hint: "Empty: as your own key, at most 3,000." }}
      />
    </>
  );
}

export function RotateKey({ of: key, onClose, onDone }: DialogProps & { of: Key }) {
  const [grace, setGrace] = useState("86400");
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const isOwn = key.id === session.value?.keyId;
  return (
    <FormDialog
      title={`Rotate ${key.name || "the key"}`}
      submit="Rotate key"
      onClose={onClose}
      onSubmit={async () => {
        const made = await call<{ data: Key; key: string | null }>(`/keys/${key.id}/rotate`, {
          method: "POST",
          body: { graceSeconds: Number(grace) },
          headers: { "idempotency-key": idempotencyKey },
        });
        onDone({ name: made.data.name, secret: made.key });
      }}
    >
      <p>It gets a new secret under the same id, name and limits.</p>
      <Select
        label="The old secret stops working"
        value={grace}
        onValue={setGrace}
        choices={graces}
      />
      {isOwn && (
        <Notice tone="warn">
          You are signed in with this key: rotating it ends your session. Copy the new secret first.
        </Notice>
      )}
    </FormDialog>
  );
}

export function RevokeKey({ of: key, onClose, onDone }: DialogProps & { of: Key }) {
  const isOwn = key.id === session.value?.keyId;
  return (
    <FormDialog
      title={`Delete ${key.name || "the key"}?`}
      submit="Delete for good"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call(`/keys/${key.id}`, { method: "DELETE" });
        toast("The key is deleted.");
        onDone();
      }}
    >
      <p>
        It is refused within a second, and cannot be brought back. Running requests and jobs go on,
        and are charged. To stop it for a while, disable it.
      </p>
      {isOwn && (
        <Notice tone="warn">You are signed in with this key: this ends your session.</Notice>
      )}
    </FormDialog>
  );
}
