import { useState } from "preact/hooks";
import { call, queryOf } from "../../api.ts";
import type { Sum } from "../../format.ts";
import { useApi, useFilters, usePages } from "../../hooks.ts";
import { Amount } from "../../kit/amount.tsx";
import { FormDialog } from "../../kit/dialog.tsx";
import { DollarsField, microsOf } from "../../kit/dollars-field.tsx";
import { Segments, TextField } from "../../kit/form.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import { toast } from "../../kit/toast.tsx";
import { Id, Money, ShortId, StatusWord, When } from "../../kit/values.tsx";
import type { Unit } from "../../types.ts";
import { AccountLink } from "./account-link.tsx";
import { AccountFilter } from "./offered-filters.tsx";
import { type AdminHold, type AdminList, admin, type OfAccount, type Review } from "./types.ts";

/** A hold that an operator can end by hand, from a list of holds or from a review. */
interface Ending {
  way: "settle" | "release";
  hold: { id: string; accountId: string; unit: Unit; amount: Sum | null };
}

export function Holds() {
  const { query, set } = useFilters();
  const [ending, setEnding] = useState<Ending | null>(null);
  // Counts the ends of holds. Each makes the lists again.
  const [ends, setEnds] = useState(0);
  const tab = query.tab === "reviews" ? "reviews" : "holds";
  return (
    <Page
      title="Holds"
      lead="Money held for requests and jobs that run, and holds that an operator must decide."
    >
      <div class="filters">
        <Segments
          label="Part"
          value={tab}
          onValue={(value) => set({ tab: value === "holds" ? undefined : value })}
          choices={[
            { value: "holds", label: "Held now" },
            { value: "reviews", label: "To review" },
          ]}
        />
        <AccountFilter value={query.account ?? ""} onValue={(account) => set({ account })} />
      </div>
      {tab === "holds" ? (
        <HoldList key={ends} account={query.account} onEnd={setEnding} />
      ) : (
        <ReviewList key={ends} account={query.account} onEnd={setEnding} />
      )}
      {ending && (
        <EndHold
          {...ending}
          onClose={() => setEnding(null)}
          onDone={() => {
            setEnding(null);
            setEnds(ends + 1);
          }}
        />
      )}
    </Page>
  );
}

interface ListProps {
  account: string | undefined;
  onEnd(ending: Ending): void;
}

function EndButtons({ hold, onEnd }: { hold: Ending["hold"]; onEnd(ending: Ending): void }) {
  return (
    <>
      <button type="button" class="small" onClick={() => onEnd({ way: "settle", hold })}>
        Settle
      </button>
      <button type="button" class="small" onClick={() => onEnd({ way: "release", hold })}>
        Release
      </button>
    </>
  );
}

const accountCell = (row: OfAccount) => <AccountLink of={row} />;

function HoldList({ account, onEnd }: ListProps) {
  const pages = usePages();
  const loaded = useApi<AdminList<AdminHold>>(
    `${admin}/holds${queryOf({ account, after: pages.after, limit: 25 })}`,
  );
  const columns: Column<AdminHold>[] = [
    {
      head: "For",
      cell: (hold) => (
        <>
          <ShortId id={hold.ref} />
          <span class="sub">
            <StatusWord of="hold" value={hold.kind} />
          </span>
        </>
      ),
    },
    { head: "Account", cell: accountCell },
    { head: "Since", cell: (hold) => <When at={hold.openedAt} style="ago" /> },
    {
      head: "Amount",
      numeric: true,
      cell: (hold) => <Amount unit={hold.unit} value={hold.amount} exact />,
    },
    {
      head: "Actions",
      isActions: true,
      cell: (hold) => <EndButtons hold={hold} onEnd={onEnd} />,
    },
  ];
  return (
    <>
      <Table
        caption="Holds"
        columns={columns}
        loaded={loaded}
        rowsOf={loaded.data?.data}
        keyOf={(hold) => hold.id}
        empty={
          <Empty title="Nothing is held">
            <p>Each request and job holds the most that it may cost until it has ended.</p>
          </Empty>
        }
      />
      <Pager pages={pages} nextCursor={loaded.data?.next} />
    </>
  );
}

function ReviewList({ account, onEnd }: ListProps) {
  const loaded = useApi<AdminList<Review>>(`${admin}/reviews${queryOf({ account })}`);
  const columns: Column<Review>[] = [
    {
      head: "Request",
      cell: (review) => (
        <>
          <Id>{review.requestId}</Id>
          <span class="sub">{review.model}</span>
        </>
      ),
    },
    { head: "Account", cell: accountCell },
    {
      head: "The upstream reported",
      cell: (review) => <code class="break">{JSON.stringify(review.reportedUsage)}</code>,
    },
    {
      head: "Charged",
      numeric: true,
      cell: (review) =>
        review.chargedUsdMicros === null ? (
          <span class="muted">not decided</span>
        ) : (
          <Money micros={review.chargedUsdMicros} digits="all" />
        ),
    },
    {
      head: "Actions",
      isActions: true,
      cell: (review) =>
        review.chargedUsdMicros === null && (
          <EndButtons
            hold={{
              id: review.holdId,
              accountId: review.accountId,
              unit: "usd_micros",
              amount: null,
            }}
            onEnd={onEnd}
          />
        ),
    },
  ];
  return (
    <Table
      caption="Reviews"
      columns={columns}
      loaded={loaded}
      rowsOf={loaded.data?.data}
      keyOf={(review) => review.requestId}
      empty={
        <Empty title="Nothing to review">
          <p>Requests whose upstream reported an impossible usage are listed here.</p>
        </Empty>
      }
    />
  );
}

function EndHold({ way, hold, onClose, onDone }: Ending & { onClose(): void; onDone(): void }) {
  const [amount, setAmount] = useState("");
  const isMoney = hold.unit === "usd_micros";
  const isSettling = way === "settle";
  const charged = isMoney ? microsOf(amount) : Number(amount);
  const field = {
    label: isMoney ? "Dollars to charge" : "Credits to charge",
    hint: "From 0 up to what is held; the rest is free again.",
    required: true,
    value: amount,
    onValue: setAmount,
  };
  return (
    <FormDialog
      title={isSettling ? "Settle this hold" : "Release this hold?"}
      submit={isSettling ? "Settle hold" : "Release hold"}
      onClose={onClose}
      onSubmit={async () => {
        const body = {
          accountId: hold.accountId,
          unit: hold.unit,
          ...(isSettling && { amount: charged }),
        };
        const path = `${admin}/holds/${encodeURIComponent(hold.id)}/${way}`;
        await call(path, { method: "POST", body });
        toast(isSettling ? "The hold is settled." : "The hold is released.");
        onDone();
      }}
    >
      {hold.amount !== null && (
        <p>
          <Amount unit={hold.unit} value={hold.amount} exact /> {isMoney ? "is" : "are"} held.
        </p>
      )}
      {!isSettling && <p>Nothing is charged, and all of it is free again. A hold ends once.</p>}
      {isSettling &&
        (isMoney ? (
          <DollarsField {...field} />
        ) : (
          <TextField type="number" min="0" step="1" {...field} />
        ))}
    </FormDialog>
  );
}
