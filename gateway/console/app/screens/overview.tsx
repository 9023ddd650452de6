import type { VNode } from "preact";
import { queryOf } from "../api.ts";
import { useApi, useReloading } from "../hooks.ts";
import { Amount } from "../kit/amount.tsx";
import { Code } from "../kit/copy.tsx";
import { Page, Section } from "../kit/page.tsx";
import { Spark } from "../kit/spark.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Count, Credits, Id, Money, Status, When } from "../kit/values.tsx";
import { useRunningJobs } from "../running-jobs.ts";
import { may, seesJobs } from "../session.ts";
import type { Hold, Job, List, RequestRecord, UsagePage, UsageResult, Wallet } from "../types.ts";
import { days, startOfDay, sum } from "../usage-sums.ts";

/** Days that the spark lines show, today included: as many buckets as a page of usage has at most. */
const sparkDays = 31;

export function Overview() {
  return (
    <Page title="Overview">
      {may("billing") && <Balances />}
      <Month />
      <div class="columns">
        <Running />
        <LastErrors />
      </div>
      <FirstCall />
    </Page>
  );
}

function Balances() {
  const { data, error, reload } = useApi<Wallet>("/billing");
  if (error) return <ErrorText error={error} retry={reload} />;
  if (!data) {
    return (
      <div class="figures is-waiting">
        <div class="figure">
          <Waiting lines={2} />
        </div>
      </div>
    );
  }
  return (
    <dl class="figures">
      <div class="figure">
        <dt>Balance</dt>
        <dd>
          <Money micros={data.availableUsdMicros} />
        </dd>
        <dd class="fine muted">
          <Money micros={data.reservedUsdMicros} /> held
        </dd>
      </div>
      <div class="figure">
        <dt>Spent this month</dt>
        <dd>
          <Money micros={data.monthSpendUsdMicros} />
        </dd>
        <dd class="fine muted">calendar month, UTC</dd>
      </div>
      {data.credits && (
        <>
          <div class="figure">
            <dt>Credits</dt>
            <dd>
              <Credits value={data.credits.available} />
            </dd>
            <dd class="fine muted">
              <Credits value={data.credits.reserved} /> held for jobs
            </dd>
          </div>
          <div class="figure">
            <dt>Credits spent this month</dt>
            <dd>
              <Credits value={data.credits.monthSpent} />
            </dd>
            <dd class="fine muted">images, video, music</dd>
          </div>
        </>
      )}
    </dl>
  );
}

type Show = (value: number) => VNode;

function Month() {
  const start = startOfDay(Date.now() / 1_000) - (sparkDays - 1) * days;
  const usage = useApi<UsagePage>(
    `/usage${queryOf({ start_time: start, bucket_width: "1d", limit: sparkDays })}`,
  );
  const buckets = usage.data?.data;
  const line = (title: string, figureOf: (result: UsageResult) => number, show: Show) => (
    <figure class="figure">
      <figcaption>
        {title} <strong>{show(sum(buckets ?? [], figureOf))}</strong>
      </figcaption>
      <Spark
        label={`${title}, a day each`}
        values={buckets?.map((bucket) => sum([bucket], figureOf)) ?? []}
      />
    </figure>
  );
  return (
    <Section title="The last 31 days" actions={<a href="/console/usage">All usage</a>}>
      {usage.error ? (
        <ErrorText error={usage.error} retry={usage.reload} />
      ) : (
        <div class="figures">
          {line(
            "Dollars",
            (one) => one.spentUsdMicros,
            (micros) => (
              <Money micros={micros} />
            ),
          )}
          {line(
            "Credits",
            (one) => one.spentCredits,
            (value) => (
              <Credits value={value} />
            ),
          )}
          {line(
            "Requests",
            (one) => one.num_model_requests,
            (value) => (
              <Count value={value} />
            ),
          )}
        </div>
      )}
    </Section>
  );
}

/** Jobs move by their own events, and new ones are asked for; requests in flight are what money is held for. */
function Running() {
  const jobsOf = (status: string) => (seesJobs() ? `/jobs?status=${status}&limit=10` : null);
  const queued = useApi<List<Job>>(jobsOf("queued"));
  const begun = useApi<List<Job>>(jobsOf("running"));
  const holds = useApi<List<Hold>>(may("billing") ? "/billing/holds?limit=10" : null);
  const { jobs } = useRunningJobs(queued, begun);
  const running = jobs.sort((one, other) => other.createdAt.localeCompare(one.createdAt));
  const requests = holds.data?.data.filter((hold) => hold.kind !== "job") ?? [];
  useReloading(true, queued.reload, begun.reload, holds.reload);
  const asked = [queued, begun, holds];
  const error = asked.find((one) => one.error)?.error;
  const isKnown = asked.every((one) => one.data !== undefined || !one.isLoading);
  return (
    <Section title="Running now" actions={<a href="/console/jobs">All jobs</a>}>
      <ErrorText error={error} />
      {!isKnown && !error && <Waiting />}
      {isKnown && !error && running.length === 0 && requests.length === 0 && (
        <Empty title="Nothing is running">
          <p>
            <a href="/console/playground">Try a model in the playground</a>, and see it here.
          </p>
        </Empty>
      )}
      {(running.length > 0 || requests.length > 0) && (
        <ul class="list">
          {running.map((job) => (
            <li key={job.id}>
              <div class="row spread">
                <Id>{job.id}</Id>
                <Status value={job.status} />
              </div>
              <progress
                max={100}
                aria-label={`Progress of ${job.id}`}
                {...(job.progress !== undefined && { value: job.progress })}
              />
            </li>
          ))}
          {requests.map((hold) => (
            <li key={hold.id}>
              <div class="row spread">
                <Id>{hold.request}</Id>
                <span class="muted">
                  <Amount unit={hold.unit} value={hold.amount} /> held
                </span>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function LastErrors() {
  const failed = useApi<List<RequestRecord>>("/requests?status=failed&limit=5");
  const rows = failed.data?.data;
  return (
    <Section
      title="Last errors"
      actions={<a href="/console/requests?status=failed">All failed requests</a>}
    >
      <ErrorText error={failed.error} retry={failed.reload} />
      {!rows && !failed.error && <Waiting />}
      {rows?.length === 0 && (
        <Empty title="No failed requests">
          <p>What fails after it was accepted is listed here, and costs nothing.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <ul class="list">
          {rows.map((row) => (
            <li key={row.id}>
              <div class="row spread">
                <Id>{row.id}</Id>
                <When at={row.createdAt} style="ago" />
              </div>
              <p class="sub">{row.model}</p>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function FirstCall() {
  const text = [
    "export KEY=gm_…",
    `curl -N ${location.origin}/v1/responses \\`,
    '  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
    `  -d '{"model": "chat-1", "input": "Why is the sky blue?", "stream": true}'`,
  ].join("\n");
  return (
    <Section title="The first request" actions={<a href="/docs">API documentation</a>}>
      <Code label="The first request, for a terminal" text={text} />
    </Section>
  );
}
