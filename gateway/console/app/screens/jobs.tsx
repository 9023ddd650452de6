import { useState } from "preact/hooks";
import { call, queryOf } from "../api.ts";
import { useAction, useApi, useFilters, usePages, useReloading } from "../hooks.ts";
import { FormDialog } from "../kit/dialog.tsx";
import { Select } from "../kit/form.tsx";
import { Icon } from "../kit/icon.tsx";
import { KeyName } from "../kit/key-name.tsx";
import { Page } from "../kit/page.tsx";
import { SearchField } from "../kit/search.tsx";
import { Empty, ErrorText } from "../kit/states.tsx";
import { type Column, Pager, Table } from "../kit/table.tsx";
import { toast } from "../kit/toast.tsx";
import { Credits, ModelId, ShortId, Status, When } from "../kit/values.tsx";
import { ModelFilter } from "../offered-filters.tsx";
import { useRunningJobs } from "../running-jobs.ts";
import { choicesOf, jobStatuses } from "../statuses.ts";
import { RangeFilter, useTimeRange } from "../time-range.tsx";
import type { Job, List } from "../types.ts";
import { FirstWords, useFirstWords } from "./first-words.tsx";
import { JobDetail } from "./job-detail.tsx";
import { isOwn, type ListedJob, statusOf } from "./listed-job.ts";
import { kindOf, outputsOf, pathOf, urlOf } from "./output-files.ts";
import { forget } from "./playground/made-jobs.ts";

/** The API has four. To it a cancelled job is a failed one. */
const statuses = [
  ...choicesOf(jobStatuses).filter(({ value }) => value !== "failed" && value !== "cancelled"),
  { value: "failed", label: "failed or cancelled" },
];
const kinds = ["image", "video", "music"];

/** Images, videos and music: the jobs, their progress and their cost. */
export function Jobs() {
  const { query, set } = useFilters();
  const pages = usePages();
  const { kind, status, model, id } = query;
  const range = useTimeRange();
  const loaded = useApi<List<ListedJob>>(
    `/jobs${queryOf({ kind, status, model, ...range, cursor: pages.after, limit: 25 })}`,
  );
  useFirstWords();
  const { areAllWatched } = useRunningJobs(loaded);
  useReloading(!areAllWatched, loaded.reload);
  const [doomed, setDoomed] = useState<ListedJob | null>(null);
  const cancel = useAction(async (job: ListedJob) => {
    const now = await call<Job>(`${pathOf(job)}/cancel`, { method: "POST" });
    loaded.set((list) => ({
      ...list,
      data: list.data.map((one) => (one.id === now.id ? { ...one, ...now } : one)),
    }));
    toast("The job is cancelled.");
  });
  const rows = loaded.data?.data;
  const chosen = id ? rows?.find((job) => job.id === id) : undefined;
  const columns = columnsOf({
    hasKeys: rows?.some((job) => job.keyId !== undefined) ?? false,
    isBusy: cancel.isBusy,
    cancel: cancel.run,
    remove: setDoomed,
  });
  return (
    <Page
      title="Jobs"
      lead="Images, videos and music, newest first. Running jobs show their progress by themselves."
      actions={
        <a class="button primary" href="/console/playground?kind=image">
          New job
        </a>
      }
    >
      <SearchField
        label="Find by id"
        placeholder="job_…"
        value={id ?? ""}
        onSearch={(wanted) => set({ id: wanted })}
      />
      {id && (
        <JobDetail
          id={id}
          known={chosen}
          isListed={rows !== undefined}
          onClose={() => set({ id: undefined })}
        />
      )}
      <Filters query={query} set={set} />
      <ErrorText error={cancel.error} />
      <Table
        caption="Jobs"
        columns={columns}
        loaded={loaded}
        rowsOf={rows}
        keyOf={(job) => job.id}
        empty={
          <Empty title={pages.after ? "No more jobs" : "No jobs here"}>
            <p>
              Clear the filters above, or <a href="/console/playground?kind=image">make an image</a>
              .
            </p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.nextCursor} />
      {doomed && (
        <FormDialog
          title="Delete this job?"
          submit="Delete for good"
          isDangerous
          onClose={() => setDoomed(null)}
          onSubmit={async () => {
            await call(pathOf(doomed), { method: "DELETE" });
            forget(doomed.id);
            setDoomed(null);
            if (id === doomed.id) set({ id: undefined });
            toast("The job and its files are gone.");
            loaded.reload();
          }}
        >
          <p>Its files and its prompt are erased. Its charge stays in the ledger.</p>
        </FormDialog>
      )}
    </Page>
  );
}

function Filters({ query, set }: ReturnType<typeof useFilters>) {
  return (
    <div class="filters">
      <Select
        label="Kind"
        value={query.kind ?? ""}
        onValue={(value) => set({ kind: value })}
        choices={[{ value: "", label: "All kinds" }, ...kinds]}
      />
      <Select
        label="Status"
        value={query.status ?? ""}
        onValue={(value) => set({ status: value })}
        choices={[{ value: "", label: "Any status" }, ...statuses]}
      />
      <ModelFilter value={query.model ?? ""} onValue={(value) => set({ model: value })} />
      <RangeFilter label="Submitted" />
    </div>
  );
}

function columnsOf(of: {
  hasKeys: boolean;
  isBusy: boolean;
  cancel(job: ListedJob): void;
  remove(job: ListedJob): void;
}): Column<ListedJob>[] {
  const key: Column<ListedJob> = {
    head: "Key",
    cell: (job) => <KeyName id={job.keyId ?? null} />,
  };
  return [
    { head: "Job", cell: (job) => <Name job={job} /> },
    {
      head: "Model",
      cell: (job) => (
        <>
          {job.model && <ModelId id={job.model} />}
          <span class="sub">{kindOf(job)}</span>
        </>
      ),
    },
    ...(of.hasKeys ? [key] : []),
    { head: "Status", cell: (job) => <Progress job={job} /> },
    { head: "Credits", numeric: true, cell: (job) => <Charge job={job} /> },
    {
      head: "Actions",
      isActions: true,
      cell: (job) =>
        isOwn(job) &&
        (job.terminal ? (
          <button type="button" class="small danger-text" onClick={() => of.remove(job)}>
            Delete
          </button>
        ) : (
          <button type="button" class="small" disabled={of.isBusy} onClick={() => of.cancel(job)}>
            Cancel
          </button>
        )),
    },
  ];
}

function Name({ job }: { job: ListedJob }) {
  const [first] = outputsOf(job);
  const hasImage = first && kindOf(job) === "image" && isOwn(job);
  return (
    <span class="with-thumb">
      {hasImage ? (
        <img class="thumb" src={urlOf(job, first)} alt="" loading="lazy" />
      ) : (
        <span class="thumb">
          <Icon name={kindOf(job) === "image" ? "files" : "playground"} />
        </span>
      )}
      <span>
        <a href={`/console/jobs?id=${job.id}`}>
          <ShortId id={job.id} />
        </a>
        <span class="sub">
          <When at={job.createdAt} style="second" />
        </span>
        {isOwn(job) && <FirstWords of={job.id} />}
      </span>
    </span>
  );
}

function Progress({ job }: { job: Job }) {
  return (
    <>
      <Status of="job" value={statusOf(job)} />
      {!job.terminal && (
        <progress max={100} value={job.progress ?? 0} aria-label={`Progress of ${job.id}`} />
      )}
    </>
  );
}

function Charge({ job }: { job: Job }) {
  if (job.terminal) return <Credits value={job.creditsCharged ?? 0} />;
  return (
    <>
      <Credits value={job.creditsReserved} />
      <span class="sub">held</span>
    </>
  );
}
