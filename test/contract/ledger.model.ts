import { ErrorReason, type Reason, reasonName } from "#kit/base/errors.ts";
import type { Operation, Outcome } from "../../services/billing/ledger/operations.ts";
import type { KeyLimit, WalletRef } from "../../services/billing/ledger/wallet.ts";

/**
 * A simple ledger, written without knowledge of the real one: a list of grants and a list of holds. It keeps no sums. Every figure is added
 * up for each question, in plain numbers.
 */
export interface Model {
  /** Applies an operation. Answers its expected outcome in words. */
  apply(operation: Operation, now: number): string;
  figures(now: number): Figures;
  /** Open holds as "id amount checkAt", sorted. */
  openHolds(): string[];
  /** Ends of holds whose months are remembered. Some can be refunded, others charged nothing. */
  ends(): { holdId: string; entry: number }[];
  /** All grants. Some of them are taken back. */
  grants(): { grantId: string; entry: number }[];
}

/** The figures of a wallet that an observer sees. */
export interface Figures {
  granted: number;
  free: number;
  held: number;
  spent: number;
  monthSpent: number;
  openHolds: number;
  entries: number;
}

interface ModelHold {
  content: string;
  amount: number;
  keyId: string;
  checkTimes: number[];
  /** The periods are "" after the wallet, or the key, has forgotten them. */
  end?: End;
}

interface End {
  how: "settled" | "released";
  charged: number;
  month: string;
  /** The key's day. */
  day: string;
  week: string;
  keyMonth: string;
  /** Its lease had ended, so its charge is not decided yet. */
  isLapsed?: boolean;
  /** The number of its entry. */
  n: number;
  refund?: { amount: number; id: string; n: number };
}

interface ModelGrant {
  amount: number;
  /** The number of its entry. */
  n: number;
  taken: { id: string; amount: number }[];
}

/** An outcome of the real ledger in the model's words. */
export function say(outcome: Outcome | undefined): string {
  switch (outcome?.kind) {
    case "granted":
      return `granted${again(outcome.replayed)}`;
    case "reserved":
      return `${outcome.state} ${outcome.held}${again(outcome.replayed)}`;
    case "closed":
      return `${outcome.state} ${outcome.charged}${again(outcome.replayed)}`;
    case "extended":
      return `extended${again(outcome.replayed)}`;
    case "drawn":
      return `drawn ${outcome.charged}${again(outcome.replayed)}`;
    case "refunded":
      return `refunded ${outcome.amount}${again(outcome.replayed)}`;
    case "takenBack":
      return `taken back ${outcome.amount}${again(outcome.replayed)}`;
    case "refused":
      return refused(outcome.reason);
    case undefined:
      return "nothing";
  }
}

/** Makes the model of an empty wallet. */
export function createModel({ unit }: WalletRef): Model {
  const grants = new Map<string, ModelGrant>();
  const holds = new Map<string, ModelHold>();
  /** Charges without an open hold, by the id of the hold that they name. */
  const lates = new Map<string, ModelHold & { end: End }>();
  let entries = 0;
  let clock = 0;

  const all = () => [...holds.values(), ...lates.values()];
  const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
  const held = (some: ModelHold[]) => sum(some.filter((h) => !h.end).map((h) => h.amount));
  const charged = (some: ModelHold[], period?: string, of: Period = "month") =>
    sum(
      some.map(({ end }) =>
        end && (!period || end[of] === period) ? end.charged - (end.refund?.amount ?? 0) : 0,
      ),
    );
  const leftOf = ({ amount, taken }: ModelGrant) => amount - sum(taken.map((one) => one.amount));
  const granted = () => sum([...grants.values()].map(leftOf));
  const free = () => granted() - held(all()) - charged(all());
  /** A time up to five minutes before the last one counts as the last one. */
  const timeAt = (now: number) => (clock - now > 300_000 ? now : Math.max(clock, now));
  /** The remembered periods of the wallet and of each key: the last two with an entry. */
  const remembered = new Map<string, [string, string]>();
  const remember = (owner: string, some: ModelHold[], of: Period) => {
    const name = `${owner} ${of}`;
    const period = periodsOf(clock)[of];
    const [last = "", before = ""] = remembered.get(name) ?? [];
    if (last === period) return;
    remembered.set(name, [period, last]);
    if (before === period) return;
    for (const { end } of some) if (end?.[of] === before) end[of] = "";
  };
  const write = (now: number, keyId?: string) => {
    entries++;
    clock = timeAt(now);
    remember("", all(), "month");
    if (keyId === undefined) return;
    const ofKey = all().filter((hold) => hold.keyId === keyId);
    for (const slot of ["day", "week", "keyMonth"] as const) remember(keyId, ofKey, slot);
  };

  function leftOfLimit(keyId: string, limit: KeyLimit | undefined, now: number): number {
    if (unit !== "usd_micros" || !limit) return Number.POSITIVE_INFINITY;
    const ofKey = all().filter((hold) => hold.keyId === keyId);
    const of = limit.period === "month" ? "keyMonth" : limit.period;
    const spent = of === "ever" ? charged(ofKey) : charged(ofKey, periodsOf(timeAt(now))[of], of);
    return Number(limit.amount) - spent - held(ofKey);
  }

  function draw(op: Extract<Operation, { kind: "draw" }>, now: number): string {
    const { holdId, keyId, fromFree } = op;
    const hold = holds.get(holdId);
    const asked = Number(op.amount);
    const known = lates.get(holdId)?.end ?? (hold?.end?.isLapsed ? undefined : hold?.end);
    if (known) return `drawn ${known.charged}, again`;
    if (hold && !hold.end) {
      end(holdId, "settled", asked, now);
      return `drawn ${Math.min(asked, hold.amount)}`;
    }
    const room = fromFree
      ? Math.min(free(), leftOfLimit(keyId, fromFree.keyLimit, now))
      : Number.NEGATIVE_INFINITY;
    const sum = asked <= Math.max(0, room) ? asked : 0;
    write(now, keyId);
    const made: End = { how: "settled", charged: sum, ...periodsOf(clock), n: entries };
    lates.set(holdId, { content: "", amount: 0, keyId, checkTimes: [], end: made });
    return `drawn ${sum}`;
  }

  function reserve(op: Extract<Operation, { kind: "reserve" }>, now: number): string {
    const { holdId, holdKind, keyId, ref, checkAt, keyLimit } = op;
    const content = JSON.stringify([holdKind, keyId, ref, checkAt]);
    const [least, most] = [Number(op.least ?? op.amount), Number(op.amount)];
    const known = holds.get(holdId);
    if (known) {
      const fits = known.content === content && least <= known.amount && known.amount <= most;
      if (!fits) return refused(ErrorReason.OPERATION_MISMATCH);
      const end = lates.get(holdId)?.end ?? known.end;
      return `${end?.how ?? "open"} ${known.amount}, again`;
    }
    if (lates.has(holdId)) return refused(ErrorReason.OPERATION_CONFLICT);
    const ofLimit = leftOfLimit(keyId, keyLimit, now);
    if (least > Math.max(0, ofLimit)) return refused(ErrorReason.KEY_LIMIT_EXCEEDED);
    if (free() < least) {
      return refused(
        unit === "credits" ? ErrorReason.INSUFFICIENT_CREDITS : ErrorReason.INSUFFICIENT_BALANCE,
      );
    }
    if (all().filter((hold) => !hold.end).length >= 1000) {
      return refused(ErrorReason.TOO_MANY_OPEN_REQUESTS);
    }
    const amount = Math.min(most, free(), Math.max(0, ofLimit));
    write(now, keyId);
    holds.set(holdId, { content, amount, keyId, checkTimes: [checkAt] });
    return `open ${amount}`;
  }

  function end(
    holdId: string,
    how: "settled" | "released",
    asked: number,
    now: number,
    isLapsed = false,
  ): string {
    const hold = holds.get(holdId);
    const isAgain = isLapsed && hold?.end?.isLapsed;
    const known = isAgain ? hold.end : (lates.get(holdId)?.end ?? hold?.end);
    if (known) return `${known.how} ${known.charged}, again`;
    if (!hold) return refused(ErrorReason.HOLD_NOT_FOUND);
    write(now, hold.keyId);
    const charged = Math.min(asked, hold.amount);
    hold.end = { how, charged, ...periodsOf(clock), isLapsed, n: entries };
    return `${how} ${hold.end.charged}`;
  }

  function extend(holdId: string, step: number, checkAt: number, now: number): string {
    const hold = holds.get(holdId);
    const known = hold?.checkTimes[step];
    if (known !== undefined) {
      return known === checkAt ? "extended, again" : refused(ErrorReason.OPERATION_MISMATCH);
    }
    if (!hold || hold.end) return refused(ErrorReason.HOLD_NOT_FOUND);
    if (step !== hold.checkTimes.length) return refused(ErrorReason.OPERATION_CONFLICT);
    write(now);
    hold.checkTimes.push(checkAt);
    return "extended";
  }

  /** The charge of a request, once it is decided. */
  const decided = (holdId: string) => {
    const of = lates.get(holdId) ?? holds.get(holdId);
    return of?.end && !of.end.isLapsed ? { keyId: of.keyId, end: of.end } : undefined;
  };

  function refund(op: Extract<Operation, { kind: "refund" }>, now: number): string {
    const charge = decided(op.holdId);
    if (charge?.end.n !== op.entry) return refused(ErrorReason.ENTRY_NOT_FOUND);
    const { end, keyId } = charge;
    const amount = op.amount === undefined ? end.charged : Number(op.amount);
    if (end.refund) {
      if (end.refund.id !== op.refundId) return refused(ErrorReason.OPERATION_CONFLICT);
      if (end.refund.amount !== amount) return refused(ErrorReason.OPERATION_MISMATCH);
      return `refunded ${amount}, again`;
    }
    if (end.charged === 0 || amount > end.charged) return refused(ErrorReason.INVALID_ARGUMENT);
    write(now, keyId);
    end.refund = { amount, id: op.refundId, n: entries };
    return `refunded ${amount}`;
  }

  function grant(grantId: string, amount: number, now: number): string {
    const known = grants.get(grantId);
    if (known !== undefined) {
      return known.amount === amount ? "granted, again" : refused(ErrorReason.OPERATION_MISMATCH);
    }
    write(now);
    grants.set(grantId, { amount, n: entries, taken: [] });
    return "granted";
  }

  function takeBack(op: Extract<Operation, { kind: "takeBack" }>, now: number): string {
    const grant = grants.get(op.grantId);
    if (grant?.n !== op.entry) return refused(ErrorReason.ENTRY_NOT_FOUND);
    const at = grant.taken.findIndex(({ id }) => id === op.takeBackId);
    const before = at < 0 ? grant.taken : grant.taken.slice(0, at);
    const left = leftOf({ ...grant, taken: before });
    const asked = op.amount === undefined ? left : Number(op.amount);
    const known = grant.taken[at]?.amount;
    if (known !== undefined) {
      const isSame = op.upTo ? known <= asked : known === asked;
      return isSame ? `taken back ${known}, again` : refused(ErrorReason.OPERATION_MISMATCH);
    }
    if (grant.taken.length === 20) return refused(ErrorReason.OPERATION_CONFLICT);
    if (left === 0 || asked > left) return refused(ErrorReason.INVALID_ARGUMENT);
    const amount = op.upTo ? Math.min(asked, free()) : asked;
    if (amount > free() || amount === 0) {
      return refused(
        unit === "credits" ? ErrorReason.INSUFFICIENT_CREDITS : ErrorReason.INSUFFICIENT_BALANCE,
      );
    }
    write(now);
    grant.taken.push({ id: op.takeBackId, amount });
    return `taken back ${amount}`;
  }

  return {
    apply(operation, now) {
      switch (operation.kind) {
        case "grant":
          return grant(operation.grantId, Number(operation.amount), now);
        case "reserve":
          return reserve(operation, now);
        case "settle":
          return end(operation.holdId, "settled", Number(operation.amount), now);
        case "release":
          return end(operation.holdId, "released", 0, now, operation.isLapse);
        case "draw":
          return draw(operation, now);
        case "refund":
          return refund(operation, now);
        case "takeBack":
          return takeBack(operation, now);
        case "extend":
          return extend(operation.holdId, operation.step, operation.checkAt, now);
      }
    },
    figures: (now) => ({
      granted: granted(),
      free: free(),
      held: held(all()),
      spent: charged(all()),
      monthSpent: charged(all(), periodsOf(timeAt(now)).month),
      openHolds: all().filter((hold) => !hold.end).length,
      entries,
    }),
    ends: () =>
      [...new Set([...holds.keys(), ...lates.keys()])].flatMap((holdId) => {
        const end = decided(holdId)?.end;
        const isRemembered = end?.month && end.keyMonth && end.week && end.day;
        return isRemembered ? [{ holdId, entry: end.n }] : [];
      }),
    grants: () => [...grants].map(([grantId, { n }]) => ({ grantId, entry: n })),
    openHolds: () =>
      [...holds]
        .filter(([, hold]) => !hold.end)
        .map(([id, hold]) => `${id} ${hold.amount} ${hold.checkTimes.at(-1)}`)
        .sort(),
  };
}

type Period = "day" | "week" | "month" | "keyMonth";

function periodsOf(ms: number): Record<Period, string> {
  const date = new Date(ms);
  const month = `${date.getUTCFullYear()}/${date.getUTCMonth() + 1}`;
  const day = `${month}/${date.getUTCDate()}`;
  // A week's name here is the date of its Monday.
  const monday = new Date(ms);
  while (monday.getUTCDay() !== 1) monday.setUTCDate(monday.getUTCDate() - 1);
  return { day, week: monday.toDateString(), month, keyMonth: month };
}

function again(replayed: boolean): string {
  return replayed ? ", again" : "";
}

function refused(reason: Reason): string {
  return `refused ${reasonName(reason)}`;
}
