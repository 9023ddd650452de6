import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { FormDialog } from "../../kit/dialog.tsx";
import { DollarsField, dollarsOf, microsOf } from "../../kit/dollars-field.tsx";
import { TextArea, TextField } from "../../kit/form.tsx";
import { toast } from "../../kit/toast.tsx";
import { Credits, Fact, Money, When } from "../../kit/values.tsx";
import { type Account, type AccountInFull, admin } from "./types.ts";

/** The settings of an account that operators make. */
export function AccountSettings({ account }: { account: AccountInFull }) {
  const { requestsPerMinute, rateIsSet, monthlyGrant, notes } = account;
  return (
    <dl class="facts">
      <Fact name="Rate">
        {requestsPerMinute.toLocaleString("en")} requests a minute{!rateIsSet && " (default)"}
      </Fact>
      <Fact name="Monthly grant">{monthlyGrant ? <Grant of={monthlyGrant} /> : "none"}</Fact>
      {notes && (
        <Fact name="Notes">
          <span class="notes">{notes}</span>
        </Fact>
      )}
    </dl>
  );
}

function Grant({ of: { usdMicros, credits, nextAt } }: { of: MonthlyGrant }) {
  return (
    <>
      {Number(usdMicros) > 0 && <Money micros={usdMicros} />}
      {Number(usdMicros) > 0 && Number(credits) > 0 && " and "}
      {Number(credits) > 0 && (
        <>
          <Credits value={credits} /> credits
        </>
      )}
      , next on <When at={nextAt} style="day" />
    </>
  );
}

type MonthlyGrant = NonNullable<AccountInFull["monthlyGrant"]>;

interface EditProps {
  account: AccountInFull;
  onClose(): void;
  onDone(): void;
}

/** The form's texts. Empty ones are none, or the default. */
function draftOf({ name, notes, requestsPerMinute, rateIsSet, monthlyGrant }: AccountInFull) {
  const credits = Number(monthlyGrant?.credits ?? 0);
  return {
    ...{ name, notes },
    rate: rateIsSet ? String(requestsPerMinute) : "",
    dollars: dollarsOf(Number(monthlyGrant?.usdMicros ?? 0) || null),
    credits: credits === 0 ? "" : String(credits),
  };
}

type Draft = ReturnType<typeof draftOf>;

/** The body of a change: the fields that differ. */
function changesOf(before: Draft, draft: Draft) {
  const isOther = (field: keyof Draft) => draft[field].trim() !== before[field];
  const number = (text: string) => (text === "" ? null : Number(text));
  return {
    ...(isOther("name") && { name: draft.name.trim() }),
    ...(isOther("notes") && { notes: draft.notes.trim() || null }),
    ...(isOther("rate") && { requestsPerMinute: number(draft.rate) }),
    ...(isOther("dollars") && { monthlyGrantUsdMicros: microsOf(draft.dollars) ?? null }),
    ...(isOther("credits") && { monthlyGrantCredits: number(draft.credits) }),
  };
}

export function EditAccount({ account, onClose, onDone }: EditProps) {
  const before = draftOf(account);
  const [draft, setDraft] = useState(before);
  const field = (name: keyof Draft) => ({
    value: draft[name],
    onValue: (value: string) => setDraft({ ...draft, [name]: value }),
  });
  return (
    <FormDialog
      title={`Edit ${account.name || "the account"}`}
      submit="Save changes"
      wide
      onClose={onClose}
      onSubmit={async () => {
        const body = changesOf(before, draft);
        if (Object.keys(body).length > 0) {
          const path = `${admin}/accounts/${encodeURIComponent(account.id)}`;
          await call<Account>(path, { method: "PATCH", body });
          toast("Saved.");
        }
        onDone();
      }}
    >
      <TextField label="Name" required maxLength={200} {...field("name")} />
      <TextArea
        label="Notes"
        hint="For operators alone. The account never sees them."
        maxLength={2000}
        {...field("notes")}
      />
      <TextField
        label="Requests a minute"
        hint="Of all its keys together. Empty: the default."
        type="number"
        min="1"
        max="1000000"
        step="1"
        {...field("rate")}
      />
      <div class="two">
        <DollarsField label="Dollars each month" {...field("dollars")} />
        <TextField
          label="Credits each month"
          type="number"
          min="0"
          step="1"
          {...field("credits")}
        />
      </div>
      <p class="hint">
        Added on the first day of each month, from the next one on. What is left of it stays.
      </p>
    </FormDialog>
  );
}
