import type { ComponentChildren, VNode } from "preact";
import { queryOf } from "../api.ts";
import { useApi, useReloading } from "../hooks.ts";
import { Amount } from "../kit/amount.tsx";
import { Code } from "../kit/copy.tsx";
import { Page, Section } from "../kit/page.tsx";
import { Spark } from "../kit/spark.tsx";
import { Empty, ErrorText, Waiting } from "../kit/states.tsx";
import { Count, Credits, Id, Money, ShortId, Status, When } from "../kit/values.tsx";
import { periodWords } from "../limit-resets.ts";
import { useRunningJobs } from "../running-jobs.ts";
import { may, seesJobs, session } from "../session.ts";
import type {
  Hold,
  Job,
  Key,
  LimitReset,
  List,
  Model,
  RequestRecord,
  UsagePage,
  UsageResult,
  Wallet,
} from "../types.ts";
import { days, startOfDay, sum } from "../usage-sums.ts";

/** Days of the spark lines, today included: as many buckets as a page of usage has at most. */
const sparkDays = 31;

export function Overview() {
  return (
    <Page title="Overview">
      <OwnLimit />
      {may("billing") && <Balances />}
      <Month />
      <Activity />
    </Page>
  );
}

type OwnKey = Pick<
  Key,
  "limitUsdMicros" | "limitRemainingUsdMicros" | "limit_reset" | "spentUsdMicros"
>;

/** The limit of the reader's own key. Requests beyond it are refused, even where the account has money. */
function OwnLimit() {
  const { data } = useApi<{ data: OwnKey }>(session.value?.keyId ? "/key" : null);
  const { limitUsdMicros: limit, limitRemainingUsdMicros: left, limit_reset } = data?.data ?? {};
  if (limit === undefined || limit === null) return null;
  return (
    <dl class="figures">
      <Figure
        title="Left of this key's limit"
        value={<Money micros={left ?? 0} />}
        note={
          <>
            of <Money micros={limit} />, {periodWords(limit_reset ?? null)}
          </>
        }
      />
      <Figure
        title="Charged of it"
        value={<Money micros={limit - (left ?? 0)} />}
        note={limit_reset ? `It begins anew ${renewals[limit_reset]}.` : "It never begins anew."}
      />
    </dl>
  );
}

const renewals: Record<LimitReset, string> = {
  daily: "at midnight, UTC",
  weekly: "on Monday at midnight, UTC",
  monthly: "on the first of the month, UTC",
};

function Balances() {
  const { data, error, reload } = useApi<Wallet>("/billing");
  if (error) return <ErrorText error={error} retry={reload} />;
  const credits = data ? data.credits : {};
  return (
    <dl class="figures" aria-busy={!data}>
      <Figure
        title="Balance"
        value={data && <Money micros={data.availableUsdMicros} />}
        note={
          data && (
            <>
              <Money micros={data.reservedUsdMicros} /> held
            </>
          )
        }
      />
      <Figure
        title="Charged this month"
        value={data && <Money micros={data.monthSpendUsdMicros} />}
        note="calendar month, UTC"
      />
      {credits && (
        <>
          <Figure
            title="Credits"
            value={data?.credits && <Credits value={data.credits.available} />}
            note={
              data?.credits && (
                <>
                  <Credits value={data.credits.reserved} /> held for jobs
                </>
              )
            }
          />
          <Figure
            title="Credits charged"
            value={data?.credits && <Credits value={data.credits.monthSpent} />}
            note="calendar month, UTC"
          />
        </>
      )}
    </dl>
  );
}

/** A figure with a line below. A figure that still loads takes the room that it will need. */
function Figure({
  title,
  value,
  note,
}: Record<"title" | "value" | "note", ComponentChildren | undefined>) {
  return (
    <div class="figure">
      <dt>{title}</dt>
      <dd>{value ?? <span class="bone" />}</dd>
      <dd class="fine muted">{note ?? <span class="bone" />}</dd>
    </div>
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
        {title} {buckets && <strong>{show(sum(buckets, figureOf))}</strong>}
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
        <div class="figures" aria-busy={!buckets}>
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

/**
 * Running jobs and failures, shown together. The lengths of these lists are known when all have come, and earlier lists would move
 * with each later one. Jobs change by their own events. New ones are found by asking again.
 */
function Activity() {
  const jobsOf = (status: string) => (seesJobs() ? `/jobs?status=${status}&limit=10` : null);
  const queued = useApi<List<Job>>(jobsOf("queued"));
  const begun = useApi<List<Job>>(jobsOf("running"));
  const holds = useApi<List<Hold>>(may("billing") ? "/billing/holds?limit=10" : null);
  const failed = useApi<List<RequestRecord>>("/requests?status=failed&limit=5");
  const { jobs } = useRunningJobs(queued, begun);
  const running = jobs.sort((one, other) => other.createdAt.localeCompare(one.createdAt));
  useReloading(true, queued.reload, begun.reload, holds.reload);
  const asked = [queued, begun, holds, failed];
  if (!asked.every((one) => one.data !== undefined || !one.isLoading)) {
    return (
      <Section title="Running now">
        <Waiting lines={6} />
      </Section>
    );
  }
  return (
    <>
      <div class="columns">
        <Running
          jobs={running}
          // Holds that are not of jobs are of requests in flight.
          requests={holds.data?.data.filter((hold) => hold.kind !== "job") ?? []}
          error={[queued, begun, holds].find((one) => one.error)?.error}
        />
        <LastErrors rows={failed.data?.data} error={failed.error} retry={failed.reload} />
      </div>
      <FirstCall />
    </>
  );
}

function Running({
  jobs,
  requests,
  error,
}: {
  jobs: readonly Job[];
  requests: readonly Hold[];
  error: unknown;
}) {
  return (
    <Section title="Running now" actions={<a href="/console/jobs">All jobs</a>}>
      <ErrorText error={error} />
      {!error && jobs.length === 0 && requests.length === 0 && (
        <Empty title="Nothing is running">
          <p>
            <a href="/console/playground">Try a model in the playground</a>, and see it here.
          </p>
        </Empty>
      )}
      {(jobs.length > 0 || requests.length > 0) && (
        <ul class="list">
          {jobs.map((job) => (
            <li key={job.id}>
              <div class="row spread">
                <a href={`/console/jobs?id=${encodeURIComponent(job.id)}`}>
                  <ShortId id={job.id} />
                </a>
                <Status of="job" value={job.status} />
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

function LastErrors({
  rows,
  error,
  retry,
}: {
  rows: readonly RequestRecord[] | undefined;
  error: unknown;
  retry(): void;
}) {
  return (
    <Section
      title="Last errors"
      actions={<a href="/console/requests?status=failed">All failed requests</a>}
    >
      <ErrorText error={error} retry={retry} />
      {rows?.length === 0 && (
        <Empty title="No failed requests">
          <p>Requests that fail after they were accepted are listed here. They cost nothing.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <ul class="list">
          {rows.map((row) => (
            <li key={row.id}>
              <div class="row spread">
                <a href={`/console/requests?id=${encodeURIComponent(row.id)}`}>
                  <ShortId id={row.id} />
                </a>
                <When at={row.createdAt} style="ago" />
              </div>
              <p class="sub">
                {row.model}
                {row.error && `: ${row.error.message}`}
              </p>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** A request to copy, of a model that this key may use. */
function FirstCall() {
  const models = useApi<List<Model>>(may("models") ? "/models" : null).data?.data ?? [];
  const chats = models.filter(({ kind }) => kind === "chat");
  const model = (chats.find((one) => one.default) ?? chats[0])?.id ?? "MODEL";
  const text = [
    "export KEY=gm_…",
    `curl -N ${location.origin}/v1/responses \\`,
    '  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
    `  -d '{"model": "${model}", "input": "Why is the sky blue?", "stream": true}'`,
  ].join("\n");
  return (
    <Section title="The first request" actions={<a href="/docs">API documentation</a>}>
      <Code label="The first request, for a terminal" text={text} />
    </Section>
  );
}
