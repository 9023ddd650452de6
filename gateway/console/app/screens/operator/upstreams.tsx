import { useEffect, useState } from "preact/hooks";
import { count, milliseconds, percent } from "../../format.ts";
import { useApi } from "../../hooks.ts";
import { Page } from "../../kit/page.tsx";
import { Empty, Waiting } from "../../kit/states.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import { Count, Status, When } from "../../kit/values.tsx";
import { ProbeUpstream } from "./probe-upstream.tsx";
import { admin, type Upstreams as Listed, type Upstream } from "./types.ts";
import { UpstreamHistories } from "./upstream-history.tsx";

/** Ms after which a visible page asks again. */
const againMs = 10_000;

const rests: Record<Upstream["resting"][number], string> = {
  failed: "it fails",
  limited: "it allows no more",
  account_empty: "your account is empty",
  key_refused: "it refuses the key",
  region_refused: "it refuses our region",
  model_missing: "it lacks a model",
  perhaps_paid: "it answers too late",
};

const columns: Column<Upstream>[] = [
  {
    head: "Upstream",
    cell: (one) => (
      <>
        {one.name}
        <span class="sub">
          {one.protocol}, for {one.models.join(", ") || "no model"}
        </span>
      </>
    ),
  },
  {
    head: "State",
    cell: (one) => (
      <>
        <Status of="upstream" value={one.state} />
        {one.accountEmptyAt && (
          <span class="sub">
            your account there was empty <When at={one.accountEmptyAt} style="ago" />
          </span>
        )}
        {one.resting.length > 0 && (
          <span class="sub">
            gets no requests for a while: {one.resting.map((reason) => rests[reason]).join(", ")}
          </span>
        )}
      </>
    ),
  },
  { head: "Requests", numeric: true, cell: (one) => <Count value={one.requests} /> },
  {
    head: "Errors",
    numeric: true,
    cell: (one) => (
      <>
        <span class="num" title={`${count(one.errors)} of ${count(one.requests)}`}>
          {percent.format(one.errorRate)}
        </span>
        {one.lastError && <span class="sub">mostly {one.lastError}</span>}
      </>
    ),
  },
  {
    head: "Median, 95th",
    numeric: true,
    cell: (one) =>
      one.latencyMs ? (
        <span class="num">
          {milliseconds(one.latencyMs.p50)}, {milliseconds(one.latencyMs.p95)}
        </span>
      ) : (
        <span class="muted">–</span>
      ),
  },
  {
    head: "In flight",
    numeric: true,
    cell: ({ inFlight, busiest, slots }) => (
      <>
        <Count value={inFlight} />
        {slots !== null && (
          <span class="sub">
            busiest replica {count(busiest)} of {count(slots)}
          </span>
        )}
      </>
    ),
  },
];

export function Upstreams() {
  const [asked, setAsked] = useState<string | null>(null);
  const all: Column<Upstream>[] = [
    ...columns,
    {
      head: "Actions",
      isActions: true,
      cell: ({ name, protocol }) =>
        protocol !== "builtin" && (
          <button type="button" onClick={() => setAsked(name)}>
            Probe<span class="unseen"> {name}</span>
          </button>
        ),
    },
  ];
  const loaded = useApi<Listed>(`${admin}/upstreams`);
  const { reload } = loaded;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), againMs);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <Page
      title="Upstreams"
      lead="Health of each upstream over the last 5 minutes, from all replicas. Alerts use these figures. Updated every 10 seconds."
    >
      {loaded.data || loaded.error ? (
        <>
          <Table
            caption="Upstreams"
            columns={all}
            loaded={loaded}
            rowsOf={loaded.data?.data}
            keyOf={(one) => one.name}
            empty={
              <Empty title="The catalog names no upstream">
                <p>Name one in the catalog file, and the models that it serves.</p>
              </Empty>
            }
          />
          <UpstreamHistories />
        </>
      ) : (
        // Rows that came would push the history down.
        <Waiting lines={6} />
      )}
      {asked !== null && <ProbeUpstream name={asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}
