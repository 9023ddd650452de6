import { DollarsField } from "../kit/dollars-field.tsx";
import { Select, TextField } from "../kit/form.tsx";
import { limitResets } from "../limit-resets.ts";

/** The fields of a key's forms, as typed texts. */
export interface KeyDraft {
  name: string;
  scopes: string[];
  models: string[];
  limitDollars: string;
  limitReset: string;
  expires: string;
  requestsPerMinute: string;
  webhookUrl: string;
}

/** The fields of a new key. */
export const emptyDraft: KeyDraft = {
  ...{ name: "", scopes: [], models: [], limitDollars: "", limitReset: "monthly" },
  ...{ expires: "", requestsPerMinute: "", webhookUrl: "" },
};

/** The end of a day of the form (UTC). The key may be used until then. */
export const endOfDay = (day: string) => `${day}T23:59:59.999Z`;

interface BoundFieldsProps {
  draft: KeyDraft;
  onChange(change: Partial<KeyDraft>): void;
  limitHint: string;
  expiresHint: string;
  /** Properties of the field of requests a minute. */
  rate: { hint?: string; required?: boolean; max?: string };
}

/** The bounds of a key, and its address for alerts about them. */
export function BoundFields({ draft, onChange, limitHint, expiresHint, rate }: BoundFieldsProps) {
  return (
    <>
      <div class="two">
        <DollarsField
          label="Limit in US dollars"
          hint={limitHint}
          value={draft.limitDollars}
          onValue={(limitDollars) => onChange({ limitDollars })}
        />
        <Select
          label="The limit begins anew"
          value={draft.limitReset}
          onValue={(limitReset) => onChange({ limitReset })}
          choices={limitResets}
        />
        <TextField
          label="Last day (UTC)"
          hint={expiresHint}
          type="date"
          value={draft.expires}
          onValue={(expires) => onChange({ expires })}
        />
        <TextField
          label="Requests a minute"
          {...rate}
          type="number"
          min="1"
          step="1"
          value={draft.requestsPerMinute}
          onValue={(requestsPerMinute) => onChange({ requestsPerMinute })}
        />
      </div>
      <TextField
        label="Webhook"
        hint="It gets the ends of the key's jobs, and alerts of its limit."
        type="url"
        placeholder="https://"
        maxLength={2048}
        value={draft.webhookUrl}
        onValue={(webhookUrl) => onChange({ webhookUrl })}
      />
    </>
  );
}

/** The balance below which a key's webhook gets an alert. Its field is below the webhook's. */
export function LowBalanceField(props: { value: string; onValue(value: string): void }) {
  return (
    <DollarsField
      label="Alert below a balance of"
      hint="US dollars of the account. Empty: no alert."
      {...props}
    />
  );
}
