// The operator's screen of the jobs of all accounts.

import { useState } from "preact/hooks";
import { call, queryOf } from "../../api.ts";
import { useApi, useFilters, usePages } from "../../hooks.ts";
import { Amount } from "../../kit/amount.tsx";
import { FormDialog } from "../../kit/dialog.tsx";
import { Select } from "../../kit/form.tsx";
import { Page, Section } from "../../kit/page.tsx";
import { SearchField } from "../../kit/search.tsx";
import { Empty, ErrorText, Waiting } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { Credits, Fact, Id, ShortId, Status, StatusWord, When } from "../../kit/values.tsx";
import { RangeFilter, useTimeRange } from "../../time-range.tsx";
import { shownStatus } from "../listed-job.ts";
import { AccountLink } from "./account-link.tsx";
import { accountPath } from "./accounts.tsx";
import { keyPath } from "./keys.tsx";
import { AccountFilter } from "./offered-filters.tsx";
import { type AdminJob, type AdminJobDetails, type AdminList, admin } from "./types.ts";

const columns: Column<AdminJob>[] = [
  {
    head: "Job",
    cell: (job) => (
      <>
        <a href={`/console/operator/jobs?id=${encodeURIComponent(job.id)}`}>
          <ShortId id={job.id} />
        </a>
        <span class="sub">
          <When at={job.createdAt} style="second" />
        </span>
      </>
    ),
  },
  {
    head: "Account, key",
    cell: (job) => (
      <>
        <AccountLink of={job} />
        <span class="sub">
          <a href={keyPath(job.keyId)}>
            <ShortId id={job.keyId} />
          </a>
        </span>
      </>
    ),
  },
  {
    head: "Model",
    cell: (job) => (
      <>
        {job.model}
        <span class="sub">{job.kind}</span>
      </>
    ),
  },
  {
    head: "Status",
    cell: (job) => (
      <>
        <Status of="job" value={statusOf(job)} />
        {job.status === "running" && <span class="sub num">{job.progress} %</span>}
        {job.errorCode && statusOf(job) !== "cancelled" && (
          <span class="sub" title={job.error ?? undefined}>
            {job.errorCode}
          </span>
        )}
      </>
    ),
  },
  {
    head: "Credits",
    numeric: true,
    cell: (job) =>
      job.creditsCharged === null ? (
        <>
          <Credits value={job.creditsReserved} />
          <span class="sub">held</span>
        </>
      ) : (
        <Credits value={job.creditsCharged} />
      ),
  },
];

const statusOf = ({ status, errorCode }: AdminJob) => shownStatus(status, errorCode);

const statuses = ["queued", "running", "completed", "failed"];

/** Jobs of all accounts: their progress, never their requests or outputs. */
export function OperatorJobs() {
  const { query, set } = useFilters();
  const pages = usePages();
  const { account, status, kind, id } = query;
  const filters = { account, status, kind, ...useTimeRange() };
  const loaded = useApi<AdminList<AdminJob>>(
    id ? null : `${admin}/jobs${queryOf({ ...filters, after: pages.after, limit: 25 })}`,
  );
  if (id) return <OneJob key={id} id={id} />;
  return (
    <Page
      title="Jobs"
      lead={
        <>
          Jobs of all accounts, newest first. Prompts and outputs are not shown. To filter ended
          jobs by model or upstream, see the <a href="/console/operator/requests">requests</a>.
        </>
      }
    >
      <div class="filters">
        <SearchField
          label="Find by id"
          placeholder="job_…"
          value=""
          onSearch={(wanted) => set({ id: wanted })}
        />
        <AccountFilter value={account ?? ""} onValue={(value) => set({ account: value })} />
        <Select
          label="Status"
          value={status ?? ""}
          onValue={(value) => set({ status: value })}
          choices={[{ value: "", label: "Any status" }, ...statuses]}
        />
        <Select
          label="Kind"
          value={kind ?? ""}
          onValue={(value) => set({ kind: value })}
          choices={[{ value: "", label: "All kinds" }, "image", "video", "music"]}
        />
        <RangeFilter label="Submitted" />
      </div>
      <Table
        caption="Jobs"
        columns={columns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(job) => job.id}
        empty={
          <Empty title="No jobs here">
            <p>Clear the filters above to see the jobs of all accounts.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
    </Page>
  );
}

function OneJob({ id }: { id: string }) {
  const loaded = useApi<AdminJobDetails>(`${admin}/jobs/${encodeURIComponent(id)}`);
  const [isRetrying, setRetrying] = useState(false);
  const job = loaded.data;
  return (
    <Page
      title="Job"
      lead={<Id>{id}</Id>}
      actions={
        <>
          <a class="button" href="/console/operator/jobs">
            All jobs
          </a>
          {job?.status === "failed" && (
            <button type="button" class="primary" onClick={() => setRetrying(true)}>
              Retry
            </button>
          )}
        </>
      }
    >
      <ErrorText error={loaded.error} retry={loaded.reload} />
      {!job && !loaded.error && <Waiting lines={6} />}
      {job && <JobFacts job={job} />}
      {job && isRetrying && (
        <RetryJob
          id={job.id}
          onClose={() => setRetrying(false)}
          onDone={() => {
            setRetrying(false);
            loaded.reload();
          }}
        />
      )}
    </Page>
  );
}

/** The refusals of upstreams to take a job, in words. */
const refusals: Record<string, string> = {
  too_many_requests: "the upstream answered 429",
  unavailable: "the upstream was not available (5xx)",
  unreachable: "the upstream could not be reached",
  account_empty: "our account at the upstream is empty",
  denied: "the upstream denied what is configured",
};

function Waits({ of: { wait, status } }: { of: AdminJobDetails }) {
  if (!wait) return null;
  const why = refusals[wait.reason] ?? "the upstream did not take the job";
  return (
    <>
      {why} ({wait.times} in all)
      {status === "queued" && (
        <>
          ; next try{" "}
          <When at={wait.nextTryAt} style="second" never="as soon as a worker has room" />
        </>
      )}
    </>
  );
}

function JobFacts({ job }: { job: AdminJobDetails }) {
  const facts: [name: string, value: preact.ComponentChildren][] = [
    ["Status", <Status key="status" of="job" value={statusOf(job)} />],
    ["Model", `${job.model} (${job.kind})`],
    [
      "Account",
      <a key="account" href={accountPath(job.accountId)}>
        {job.accountId}
      </a>,
    ],
    [
      "Key",
      <a key="key" href={keyPath(job.keyId)}>
        {job.keyId}
      </a>,
    ],
    ["Accepted", <When key="accepted" at={job.createdAt} style="second" />],
    ["Began", <When key="began" at={job.startedAt} style="second" never="not yet" />],
    ["Ended", <When key="ended" at={job.completedAt} style="second" never="not yet" />],
    ["Attempts", job.attempts],
    ["Upstream", job.upstream],
    ["Waits", job.wait && <Waits key="waits" of={job} />],
    ["Hold", <Id key="hold">{job.holdId}</Id>],
    ["Held", <Amount key="held" unit="credits" value={job.creditsReserved} />],
    [
      "Charged",
      job.creditsCharged !== null && (
        <Amount key="charged" unit="credits" value={job.creditsCharged} />
      ),
    ],
    ["Error", job.error],
    ["Repeats", job.retryOf && <Id key="repeats">{job.retryOf}</Id>],
  ];
  return (
    <>
      <dl class="facts card">
        {facts.map(([name, value]) =>
          value === null || value === "" || value === false ? null : (
            <Fact key={name} name={name}>
              {value}
            </Fact>
          ),
        )}
      </dl>
      <Section title="Steps">
        {job.events.length === 0 ? (
          <Empty title="No steps are kept of this job" />
        ) : (
          <ol class="list">
            {job.events.map((event) => (
              <li key={`${event.at}-${event.state}`} class="row spread">
                <span>
                  {event.state} <span class="muted">{event.detail}</span>
                </span>
                <When at={event.at} style="second" />
              </li>
            ))}
          </ol>
        )}
      </Section>
      <Section title="Ledger entries">
        <ol class="list">
          {job.entries.toReversed().map((entry) => (
            <li key={entry.number} class="row spread">
              <span>
                <StatusWord of="journal" value={entry.kind} />{" "}
                <span class="muted">
                  held <Amount unit={entry.unit} value={entry.heldDelta} exact />, charged{" "}
                  <Amount unit={entry.unit} value={entry.spentDelta} exact />
                </span>
              </span>
              <When at={entry.createdAt} style="second" />
            </li>
          ))}
        </ol>
      </Section>
    </>
  );
}

function RetryJob({ id, onClose, onDone }: { id: string; onClose(): void; onDone(): void }) {
  // All attempts of this form use the same value, so that a lost answer makes no second job.
  const [operationId] = useState(() => crypto.randomUUID());
  return (
    <FormDialog
      title="Make this job again?"
      submit="Retry job"
      onClose={onClose}
      onSubmit={async () => {
        const path = `${admin}/jobs/${encodeURIComponent(id)}/retry`;
        const made = await call<AdminJob>(path, { method: "POST", body: { operationId } });
        toast(`It is made again as ${made.id}.`);
        onDone();
      }}
    >
      <p>A new job with the same content is queued for its account, and held at today's price.</p>
    </FormDialog>
  );
}
