import { useApi } from "../../hooks.ts";
import { Section } from "../../kit/page.tsx";
import { ErrorText, Waiting } from "../../kit/states.tsx";
import { AlertForm } from "../alert-form.tsx";
import type { AdminAlerts } from "./types.ts";

interface AlertsProps {
  path: string;
  /** False for an account that is closed. */
  mayChange: boolean;
}

/** When and where an account is told that its funds run low. */
export function AccountAlerts({ path, mayChange }: AlertsProps) {
  const { data, error, reload } = useApi<AdminAlerts>(`${path}/alerts`);
  const limit = data?.lowBalanceUsdMicros ?? null;
  return (
    <Section title="Alerts">
      <ErrorText error={error} retry={reload} />
      {!data && !error && <Waiting lines={3} />}
      {data && (
        <AlertForm
          path={`${path}/alerts`}
          lowBalanceUsdMicros={limit === null ? null : Number(limit)}
          webhookUrl={data.webhookUrl}
          mayChange={mayChange}
          webhookHint="Told of the balance, and of limits of keys without a webhook. Empty: nobody is told."
        />
      )}
    </Section>
  );
}
