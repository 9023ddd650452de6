import { useState } from "preact/hooks";
import { call } from "../../api.ts";
import { useAction, useApi, useReloading } from "../../hooks.ts";
import { Page, Section } from "../../kit/page.tsx";
import { Empty, ErrorText, Notice, Waiting } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Badge, When } from "../../kit/values.tsx";
import {
  type AdminList,
  type AlertAnswer,
  type AlertWay,
  admin,
  type OperatorNotice,
} from "./types.ts";

const wayNames: Record<AlertWay["way"], string> = { webhook: "Webhook", mail: "Mail" };

const columns: Column<OperatorNotice>[] = [
  {
    head: "Severity",
    cell: ({ severity }) => (
      <Badge tone={severity === "critical" ? "bad" : "warn"}>{severity}</Badge>
    ),
  },
  {
    head: "Notice",
    cell: ({ text, alert }) => (
      <>
        <span class="break">{text}</span>
        {alert && <span class="sub">runbook: {alert}</span>}
      </>
    ),
  },
  { head: "Since", cell: ({ beganAt }) => <When at={beganAt} style="ago" /> },
];

const wayColumns: Column<AlertWay>[] = [
  { head: "Way", cell: ({ way }) => wayNames[way] },
  {
    head: "Last delivery",
    cell: ({ lastDeliveredAt }) =>
      lastDeliveredAt ? <When at={lastDeliveredAt} style="ago" /> : <span class="muted">none</span>,
  },
  {
    head: "Last attempt",
    cell: ({ lastAttemptAt, lastAnswer, failures, nextAttemptAt }) =>
      lastAttemptAt ? (
        <>
          <Badge tone={failures > 0 ? "bad" : "good"}>{lastAnswer ?? "under way"}</Badge>
          <span class="sub">
            <When at={lastAttemptAt} style="ago" />
            {nextAttemptAt && (
              <>
                , again <When at={nextAttemptAt} style="second" />
              </>
            )}
          </span>
        </>
      ) : (
        <span class="muted">none</span>
      ),
  },
];

/** The screen with the operator's notices, and with the ways by which genmesh sends them. */
export function Notices() {
  const loaded = useApi<AdminList<OperatorNotice> & { ways: AlertWay[] }>(`${admin}/notices`);
  useReloading(true, loaded.reload);
  const [answers, setAnswers] = useState<AlertAnswer[]>([]);
  const test = useAction(async () => {
    setAnswers([]);
    const path = `${admin}/alerts/test`;
    setAnswers((await call<AdminList<AlertAnswer>>(path, { method: "POST", body: {} })).data);
  });
  const ways = loaded.data?.ways;
  return (
    <Page title="Notices" lead="Problems that need an operator, from all processes.">
      {loaded.data || loaded.error ? (
        <>
          <Table
            caption="Notices"
            columns={columns}
            loaded={loaded}
            rowsOf={loaded.data?.data}
            keyOf={({ id }) => id}
            empty={<Empty title="Nothing to act on" />}
          />
          <Section title="Where alerts go">
            <Table
              caption="Ways"
              columns={wayColumns}
              loaded={loaded}
              rowsOf={ways}
              keyOf={({ way }) => way}
              empty={
                <Empty title="Notices are shown only here">
                  <p>
                    To get alerts, set <code>GENMESH_ALERT_WEBHOOK_URL</code> or{" "}
                    <code>GENMESH_ALERT_SMTP_URL</code>.
                  </p>
                </Empty>
              }
            />
            {ways && ways.length > 0 && (
              <p>
                <button type="button" disabled={test.isBusy} onClick={() => test.run()}>
                  {test.isBusy ? "Sending…" : "Send a test"}
                </button>
              </p>
            )}
            <ErrorText error={test.error} />
            {answers.map(({ way, isDelivered, answer }) => (
              <Notice key={way} tone={isDelivered ? "good" : "warn"}>
                <strong>
                  {wayNames[way]}: {isDelivered ? "delivered" : "not delivered"}
                </strong>
                <p class="break">{answer}</p>
              </Notice>
            ))}
          </Section>
        </>
      ) : (
        // Notices that came would push the second part down.
        <Waiting lines={6} />
      )}
    </Page>
  );
}
