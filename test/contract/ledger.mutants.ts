import { monthOf } from "#common/words/money.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import type { Folded, LedgerView } from "../../services/billing/ledger/change.ts";
import { type Fold, fold } from "../../services/billing/ledger/ledger.ts";
import type { Draw } from "../../services/billing/ledger/operations.ts";
import {
  advanceHold,
  type Entry,
  type KeyCounter,
  type OpenHold,
  operationIds,
  type Wallet,
} from "../../services/billing/ledger/wallet.ts";

/** The ledger's transition with one known bug. */
export const brokenFolds: Record<string, Fold> = {
  "an operation made twice counts twice": (view, op, now) =>
    fold({ ...view, recorded: () => undefined }, op, now),
  "a grant made twice adds twice": (view, op, now) =>
    fold(op.kind === "grant" ? { ...view, recorded: () => undefined } : view, op, now),
  "a repeat with other content passes": (view, op, now) => {
    if (op.kind !== "reserve" && op.kind !== "grant") return fold(view, op, now);
    const recorded = (id: string): Entry | undefined => {
      const entry = view.recorded(id);
      return entry && { ...entry, ...op, kind: entry.kind };
    };
    return fold({ ...view, recorded }, op, now);
  },
  "a charge is given back once for each operation id": (view, op, now) => {
    if (op.kind !== "refund") return fold(view, op, now);
    const recorded = (id: string) => {
      const entry = view.recorded(id);
      return entry?.kind === "refund" && entry.ref !== op.refundId ? undefined : entry;
    };
    return fold({ ...view, recorded }, op, now);
  },
  "more is given back than was charged": (view, op, now) => {
    if (op.kind !== "refund") return fold(view, op, now);
    const recorded = (id: string) => {
      const entry = view.recorded(id);
      const isCharge = entry !== undefined && entry.spentDelta > 0n;
      return isCharge ? { ...entry, spentDelta: entry.spentDelta + 5n } : entry;
    };
    return fold({ ...view, recorded }, op, now);
  },
  "more is taken back than was granted": (view, op, now) => {
    if (op.kind !== "takeBack") return fold(view, op, now);
    const recorded = (id: string) => {
      const entry = view.recorded(id);
      return entry?.kind === "grant" ? { ...entry, amount: entry.amount + 5n } : entry;
    };
    return fold({ ...view, recorded }, op, now);
  },
  "each operation takes back as much as was granted": (view, op, now) => {
    if (op.kind !== "takeBack") return fold(view, op, now);
    const recorded = (id: string) => {
      const entry = view.recorded(id);
      const isOther = entry && entry.amount < 0n && entry.ref !== op.takeBackId;
      return isOther ? { ...entry, amount: 0n } : entry;
    };
    return fold({ ...view, recorded }, op, now);
  },
  "held money is taken back": (view, op, now) => {
    if (op.kind !== "takeBack") return fold(view, op, now);
    const { held } = view.wallet;
    const rich = { ...view, wallet: { ...view.wallet, free: view.wallet.free + held } };
    return editWallet(fold(rich, op, now), (w) => ({ ...w, free: w.free - held }));
  },
  "a repeat takes back again": (view, op, now) =>
    fold(
      op.kind === "takeBack" ? { ...view, recorded: otherThan(view, op.takeBackId) } : view,
      op,
      now,
    ),
  "less is taken back than was asked, though the operator did not say so": (view, op, now) =>
    fold(view, op.kind === "takeBack" ? { ...op, upTo: true } : op, now),
  "a settlement above the hold is charged in full": (view, op, now) => {
    const asked = op.kind === "settle" ? op.amount : 0n;
    const hold = (id: string) => {
      const found = view.hold(id);
      return found && { ...found, amount: found.amount > asked ? found.amount : asked };
    };
    return fold({ ...view, hold }, op, now);
  },
  "a settlement above the hold is refused": (view, op, now) =>
    fold(view, op.kind === "settle" ? { ...op, withinHold: true } : op, now),
  "a release after the settlement gives the money back": (view, op, now) =>
    fold(op.kind === "release" ? { ...view, hold: (id) => reopened(view, id) } : view, op, now),
  "a release charges the hold": (view, op, now) => {
    const amount = op.kind === "release" ? view.hold(op.holdId)?.amount : undefined;
    return fold(
      view,
      op.kind === "release" && amount ? { ...op, kind: "settle", amount } : op,
      now,
    );
  },
  "a repeated settlement tells the amount that it brought": (view, op, now) => {
    const folded = fold(view, op, now);
    const { outcome } = folded;
    if (op.kind !== "settle" || outcome.kind !== "closed") return folded;
    return { ...folded, outcome: { ...outcome, charged: op.amount } };
  },
  "the balance is not looked at": (view, op, now) => {
    const lent = 1_000n;
    const rich = { ...view, wallet: { ...view.wallet, free: view.wallet.free + lent } };
    return editWallet(fold(rich, op, now), (w) => ({ ...w, free: w.free - lent }));
  },
  "a hold takes less than its least": (view, op, now) =>
    fold(view, op.kind === "reserve" && op.least ? { ...op, least: 1n } : op, now),
  "a hold takes its least though there is more": (view, op, now) => {
    const least = op.kind === "reserve" && !isKnown(view, op.holdId) ? op.least : undefined;
    return fold(view, op.kind === "reserve" && least ? { ...op, amount: least } : op, now);
  },
  "a hold that takes what there is overlooks the key's limit": (view, op, now) => {
    const isRange = op.kind === "reserve" && op.least !== undefined;
    return fold(view, isRange ? { ...op, keyLimit: undefined } : op, now);
  },
  "a repeat of a hold tells the amount that it brought": (view, op, now) => {
    const folded = fold(view, op, now);
    const { outcome } = folded;
    if (op.kind !== "reserve" || outcome.kind !== "reserved") return folded;
    return { ...folded, outcome: { ...outcome, held: op.amount } };
  },
  "a repeat that asks for more than was held passes": (view, op, now) =>
    fold(view, op.kind === "reserve" && isKnown(view, op.holdId) ? { ...op, least: 0n } : op, now),
  "one hold too many may be open": (view, op, now) => {
    const fewer = { ...view, wallet: { ...view.wallet, openHolds: view.wallet.openHolds - 1 } };
    return editWallet(fold(fewer, op, now), (w) => ({ ...w, openHolds: w.openHolds + 1 }));
  },
  "the month's spend goes on into the next month": (view, op, now) => {
    const month = { ...view.wallet.month, period: monthOf(Math.max(now, view.wallet.at)) };
    return fold({ ...view, wallet: { ...view.wallet, month } }, op, now);
  },
  "a charge counts in the month in which its hold was opened": (view, op, now) => {
    const opened = op.kind === "settle" ? view.hold(op.holdId)?.openedAt : undefined;
    const folded = fold(view, op, now);
    const { change } = folded;
    if (opened === undefined || !change) return folded;
    if (monthOf(opened) === change.wallet.month.period) return folded;
    const { spentDelta } = change.entry;
    return editWallet(folded, (w) => ({
      ...w,
      month: { ...w.month, spent: w.month.spent - spentDelta },
    }));
  },
  "the key's limit overlooks what is held": (view, op, now) => {
    if (op.kind !== "reserve") return fold(view, op, now);
    const folded = fold({ ...view, key: (id) => withoutHeld(view, id) }, op, now);
    const held = view.key(op.keyId)?.held ?? 0n;
    return editKey(folded, (key) => ({ ...key, held: key.held + held }));
  },
  "the key's limit forgets what is held when the month ends": (view, op, now) => {
    if (op.kind !== "reserve") return fold(view, op, now);
    const month = monthOf(Math.max(now, view.wallet.at));
    const key = (id: string) =>
      view.key(id)?.month.period === month ? view.key(id) : withoutHeld(view, id);
    return fold({ ...view, key }, op, now);
  },
  "the key's spend is not counted": (view, op, now) =>
    editKey(fold(view, op, now), (key) => ({ ...key, month: { ...key.month, spent: 0n } })),
  "the key's hold is not given back": (view, op, now) =>
    editKey(fold(view, op, now), (key) => ({
      ...key,
      held:
        op.kind === "settle" || op.kind === "release" || op.kind === "draw"
          ? heldOf(view, key.keyId)
          : key.held,
    })),
  "an entry's number is counted twice": (view, op, now) =>
    editWallet(fold(view, op, now), (w) => ({ ...w, n: w.n + 1 })),
  "the chain is not linked": (view, op, now) =>
    fold({ ...view, wallet: { ...view.wallet, hash: "" } }, op, now),
  "a clock that goes back takes the month back": (view, op, now) =>
    fold({ ...view, wallet: { ...view.wallet, at: 0 } }, op, now),
  "an extension is forgotten": (view, op, now) => {
    const folded = fold(view, op, now);
    if (op.kind !== "extend" || !folded.change) return folded;
    return { ...folded, change: { ...folded.change, hold: view.hold(op.holdId) } };
  },
  "a repeated draw charges again": (view, op, now) => {
    const recorded = (id: string) => (op.kind === "draw" ? undefined : view.recorded(id));
    return fold({ ...view, recorded }, op, now);
  },
  "a repeated draw tells the amount that it brought": (view, op, now) => {
    const folded = fold(view, op, now);
    const { outcome } = folded;
    if (op.kind !== "draw" || outcome.kind !== "drawn") return folded;
    return { ...folded, outcome: { ...outcome, charged: op.amount } };
  },
  "a draw that charges nothing is not recorded": (view, op, now) => {
    const folded = fold(view, op, now);
    const { outcome } = folded;
    const isVoid = op.kind === "draw" && !view.hold(op.holdId) && outcome.kind === "drawn";
    return isVoid && outcome.charged === 0n ? { outcome } : folded;
  },
  "a hold is opened after its request was drawn": (view, op, now) => {
    const recorded = (id: string) =>
      op.kind === "reserve" && id === operationIds.charge(op.holdId)
        ? undefined
        : view.recorded(id);
    return fold({ ...view, recorded }, op, now);
  },
  "a draw above the hold is charged in full": (view, op, now) => {
    const asked = op.kind === "draw" ? op.amount : 0n;
    const hold = (id: string) => {
      const found = view.hold(id);
      return found && { ...found, amount: found.amount > asked ? found.amount : asked };
    };
    return fold({ ...view, hold }, op, now);
  },
  "a draw without its hold overlooks the key's limit": (view, op, now) =>
    fold(view, op.kind === "draw" && op.fromFree ? withoutLimit(op) : op, now),
  "a draw without its hold takes what it was not allowed to": (view, op, now) =>
    fold(view, op.kind === "draw" ? { ...op, fromFree: withoutLimit(op).fromFree } : op, now),
  "a draw without its hold takes a part": (view, op, now) => {
    const isPart = op.kind === "draw" && op.fromFree && !view.hold(op.holdId);
    const least = isPart && op.amount > view.wallet.free ? view.wallet.free : undefined;
    return fold(view, least === undefined ? op : ({ ...op, amount: least } as typeof op), now);
  },
  "a lapse decides the charge": (view, op, now) =>
    fold(view, op.kind === "release" ? { ...op, isLapse: false } : op, now),
  "a settlement after the draw charges again": (view, op, now) => {
    const recorded = (id: string) => {
      const isHidden = op.kind === "settle" && id === operationIds.charge(op.holdId);
      return isHidden ? undefined : view.recorded(id);
    };
    return fold({ ...view, recorded }, op, now);
  },
  "a refused reserve is remembered": (view, op, now) => {
    const folded = fold(view, op, now);
    const { outcome } = folded;
    if (op.kind !== "reserve" || outcome.kind !== "refused") return folded;
    if (outcome.reason === ErrorReason.OPERATION_MISMATCH) return folded;
    const { change } = fold(view, { ...op, amount: 0n, keyLimit: undefined }, now);
    return change ? { outcome, change } : folded;
  },
};

/** A SQLite database with one known bug, which changes or loses a part of a write. */
export const brokenStores: Record<string, (db: SqliteDatabase) => SqliteDatabase> = {
  "an ended hold keeps its row": (db) => skipping(db, "DELETE FROM ledger_hold"),
  "the wallet is not written": (db) => skipping(db, "UPDATE ledger_wallet"),
  "the key's counters are not written": (db) => skipping(db, "INSERT INTO ledger_key"),
  "an extension is not written": (db) => skipping(db, "UPDATE ledger_hold"),
  "a crash leaves half of a transition": (db) => ({
    ...db,
    async write(work) {
      // Writes before the failure stay.
      const result = await db.write((tx) => {
        try {
          return { value: work(tx) };
        } catch (error) {
          return { error };
        }
      });
      if ("error" in result) throw result.error;
      return result.value;
    },
  }),
};

function skipping(db: SqliteDatabase, statement: string): SqliteDatabase {
  const broken = (tx: SqlTransaction): SqlTransaction => ({
    ...tx,
    run: (sql, ...values) => (sql.startsWith(statement) ? 1 : tx.run(sql, ...values)),
  });
  return { ...db, write: (work) => db.write((tx) => work(broken(tx))) };
}

function withoutLimit(op: Draw): Draw {
  return { ...op, fromFree: { keyLimit: undefined } };
}

function editWallet(folded: Folded, edit: (wallet: Wallet) => Wallet): Folded {
  const { change } = folded;
  return change ? { ...folded, change: { ...change, wallet: edit(change.wallet) } } : folded;
}

function editKey(folded: Folded, edit: (key: KeyCounter) => KeyCounter): Folded {
  const { change } = folded;
  return change?.key ? { ...folded, change: { ...change, key: edit(change.key) } } : folded;
}

function withoutHeld(view: LedgerView, keyId: string): KeyCounter | undefined {
  const key = view.key(keyId);
  return key && { ...key, held: 0n };
}

function heldOf(view: LedgerView, keyId: string): bigint {
  return view.key(keyId)?.held ?? 0n;
}

function isKnown(view: LedgerView, holdId: string): boolean {
  return view.recorded(operationIds.open(holdId)) !== undefined;
}

/** The hold, even if it has ended. */
function reopened(view: LedgerView, holdId: string): OpenHold | undefined {
  const opened = view.recorded(operationIds.open(holdId));
  return view.hold(holdId) ?? (opened && advanceHold(undefined, opened));
}

/** The entries that were recorded, with another operator's id in place of this one. */
function otherThan(view: LedgerView, id: string): LedgerView["recorded"] {
  return (operationId) => {
    const entry = view.recorded(operationId);
    return entry?.ref === id ? { ...entry, ref: "another" } : entry;
  };
}
