import { useApi } from "../hooks.ts";
import { ErrorText, Notice, Waiting } from "../kit/states.tsx";
import { may } from "../session.ts";
import type { BillingAlerts } from "../types.ts";
import { AlertForm } from "./alert-form.tsx";

const path = "/billing/alerts";

/** When and where the account is told that its funds run low. */
export function Alerts() {
  const loaded = useApi<BillingAlerts>(path);
  const mayChange = may("keys");
  return (
    <>
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!loaded.data && !loaded.error && <Waiting lines={3} />}
      {loaded.data && (
        <AlertForm
          path={path}
          lowBalanceUsdMicros={loaded.data.lowBalanceUsdMicros}
          webhookUrl={loaded.data.webhookUrl}
          mayChange={mayChange}
          webhookHint="Empty: nobody is told."
        >
          <p>
            The webhook is told once each time that the balance falls below the amount, and once a
            period when a request is refused for the limit of a key that has no webhook of its own.
            What was sent stands under <a href="/console/webhooks">Webhooks</a>.
          </p>
          {!mayChange && (
            <Notice>Your key may look at this; changing it needs the scope “keys”.</Notice>
          )}
        </AlertForm>
      )}
    </>
  );
}
