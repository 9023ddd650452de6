import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import { useAction } from "../hooks.ts";
import { DollarsField, dollarsOf, microsOf } from "../kit/dollars-field.tsx";
import { TextField } from "../kit/form.tsx";
import { ErrorText } from "../kit/states.tsx";
import { toast } from "../kit/toast.tsx";

interface AlertFormProps {
  /** The route that takes the change. */
  path: string;
  lowBalanceUsdMicros: number | null;
  webhookUrl: string | null;
  mayChange: boolean;
  webhookHint: string;
  /** Shown above the fields. */
  children?: ComponentChildren;
}

/** The form for the alerts of an account's low funds: the balance and the address. */
export function AlertForm({ path, mayChange, webhookHint, children, ...alerts }: AlertFormProps) {
  const [low, setLow] = useState(dollarsOf(alerts.lowBalanceUsdMicros));
  const [url, setUrl] = useState(alerts.webhookUrl ?? "");
  const save = useAction(async () => {
    const body = { lowBalanceUsdMicros: microsOf(low) ?? null, webhookUrl: url.trim() || null };
    await call(path, { method: "PATCH", body });
    toast("Saved. It counts from now on.");
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      {children}
      <div class="two">
        <DollarsField
          label="Alert below a balance of"
          hint="US dollars, with those that are held. Empty: no alert."
          disabled={!mayChange}
          value={low}
          onValue={setLow}
        />
        <TextField
          label="Webhook"
          hint={webhookHint}
          type="url"
          placeholder="https://"
          maxLength={2048}
          disabled={!mayChange}
          value={url}
          onValue={setUrl}
        />
      </div>
      <ErrorText error={save.error} />
      {mayChange && (
        <div>
          <button type="submit" class="primary" disabled={save.isBusy}>
            Save alerts
          </button>
        </div>
      )}
    </form>
  );
}
