import { ErrorReason, type Reason, reasonName } from "#kit/errors.ts";
import type { Operation, Outcome } from "../../services/billing/operations.ts";
import type { WalletRef } from "../../services/billing/wallet.ts";

/**
 * A ledger as one would explain it at a table, written without a look at the real one: a list of grants and a list of
 * holds. Nothing is carried along; every figure is added up anew when it is asked for, in plain numbers.
 */
export interface Model {
  /** Applies an operation; answers what its outcome must be, in words. */
  apply(operation: Operation, now: number): string;
  figures(now: number): Figures;
  /** Open holds as "id amount checkAt", sorted. */
  openHolds(): string[];
}

/** What an observer sees of a wallet. */
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
  end?: { how: "settled" | "released"; charged: number; month: string };
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
    case "refused":
      return refused(outcome.reason);
    case undefined:
      return "nothing";
  }
}

/** Makes the model of an empty wallet. */
export function createModel({ unit }: WalletRef): Model {
  const grants = new Map<string, number>();
  const holds = new Map<string, ModelHold>();
  let entries = 0;
  let clock = 0;

  const all = () => [...holds.values()];
  const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
  const held = (some: ModelHold[]) => sum(some.filter((h) => !h.end).map((h) => h.amount));
  const charged = (some: ModelHold[], month?: string) =>
    sum(some.map(({ end }) => (end && (!month || end.month === month) ? end.charged : 0)));
  const free = () => sum([...grants.values()]) - held(all()) - charged(all());
  const write = (now: number) => {
    entries++;
    clock = Math.max(clock, now);
  };

  function reserve(op: Extract<Operation, { kind: "reserve" }>, now: number): string {
    const { holdId, holdKind, keyId, ref, checkAt, keyMonthlyLimit } = op;
    const content = JSON.stringify([holdKind, keyId, ref, checkAt]);
    const [least, most] = [Number(op.least ?? op.amount), Number(op.amount)];
    const known = holds.get(holdId);
    if (known) {
      const fits = known.content === content && least <= known.amount && known.amount <= most;
      if (!fits) return refused(ErrorReason.OPERATION_MISMATCH);
      return `${known.end?.how ?? "open"} ${known.amount}, again`;
    }
    const ofKey = all().filter((hold) => hold.keyId === keyId);
    const used = charged(ofKey, monthOf(Math.max(now, clock))) + held(ofKey);
    const isLimited = unit === "usd_micros" && keyMonthlyLimit !== undefined;
    const ofLimit = isLimited ? Number(keyMonthlyLimit) - used : Number.POSITIVE_INFINITY;
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
    write(now);
    holds.set(holdId, { content, amount, keyId, checkTimes: [checkAt] });
    return `open ${amount}`;
  }

  function end(holdId: string, how: "settled" | "released", asked: number, now: number): string {
    const hold = holds.get(holdId);
    if (!hold) return refused(ErrorReason.HOLD_NOT_FOUND);
    if (hold.end) return `${hold.end.how} ${hold.end.charged}, again`;
    write(now);
    hold.end = { how, charged: Math.min(asked, hold.amount), month: monthOf(clock) };
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

  function grant(grantId: string, amount: number, now: number): string {
    const known = grants.get(grantId);
    if (known !== undefined) {
      return known === amount ? "granted, again" : refused(ErrorReason.OPERATION_MISMATCH);
    }
    write(now);
    grants.set(grantId, amount);
    return "granted";
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
          return end(operation.holdId, "released", 0, now);
        case "extend":
          return extend(operation.holdId, operation.step, operation.checkAt, now);
      }
    },
    figures: (now) => ({
      granted: sum([...grants.values()]),
      free: free(),
      held: held(all()),
      spent: charged(all()),
      monthSpent: charged(all(), monthOf(Math.max(now, clock))),
      openHolds: all().filter((hold) => !hold.end).length,
      entries,
    }),
    openHolds: () =>
      [...holds]
        .filter(([, hold]) => !hold.end)
        .map(([id, hold]) => `${id} ${hold.amount} ${hold.checkTimes.at(-1)}`)
        .sort(),
  };
}

function monthOf(ms: number): string {
  const date = new Date(ms);
  return `${date.getUTCFullYear()}/${date.getUTCMonth() + 1}`;
}

function again(replayed: boolean): string {
  return replayed ? ", again" : "";
}

function refused(reason: Reason): string {
  return `refused ${reasonName(reason)}`;
}
