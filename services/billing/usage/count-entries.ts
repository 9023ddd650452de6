// Computes what some entries add to usage: sums, key totals and lines. It reads and writes nothing. `usage-counting.ts` brings it
// the entries.

import type { Entry, WalletRef } from "../ledger/wallet.ts";
import { type ServedStep, servedStepOf } from "./served.ts";
import {
  type KeyStep,
  keyStepOf,
  type Line,
  lineKindOf,
  recordOf,
  stepOf,
  textOf,
  type UsageCursor,
  type UsageStep,
} from "./usage.ts";

/** The sums of some entries. */
export interface CountedEntries {
  cursor: UsageCursor;
  lines: Line[];
  steps: UsageStep[];
  keySteps: KeyStep[];
  servedSteps: ServedStep[];
}

/**
 * Counts entries in their order, up to number `upTo`. They are those that follow the cursor. Where all of them are in the rollup, they
 * are those that the totals of keys or the rollup by upstream lack. No entry is counted twice. Where one of these two lacks earlier
 * entries, it does not get these.
 */
export function countEntries(
  wallet: WalletRef,
  cursor: UsageCursor,
  entries: readonly Entry[],
  upTo: number,
): CountedEntries {
  const counted: CountedEntries = {
    ...{ cursor, lines: [], steps: [], keySteps: [], servedSteps: [] },
  };
  let { balance } = cursor;
  const mayFollow = (n: number) => upTo <= cursor.n || n >= cursor.n;
  const [areKeysCounted, isServedCounted] = [mayFollow(cursor.keysN), mayFollow(cursor.servedN)];
  for (const entry of entries) {
    const { n } = entry;
    const keyStep = keyStepOf(entry);
    if (areKeysCounted && n > cursor.keysN && keyStep) counted.keySteps.push(keyStep);
    const record = recordOf(entry);
    const step = stepOf(entry, wallet.unit, record);
    if (isServedCounted && n > cursor.servedN && step) {
      counted.servedSteps.push(servedStepOf(step, record));
    }
    if (n <= cursor.n) continue;
    if (step) counted.steps.push(step);
    balance += entry.freeDelta + entry.heldDelta;
    const line = lineOf(wallet, entry, record, balance);
    if (line) counted.lines.push(line);
  }
  counted.cursor = {
    n: Math.max(cursor.n, upTo),
    balance,
    keysN: areKeysCounted ? Math.max(cursor.keysN, upTo) : cursor.keysN,
    servedN: isServedCounted ? Math.max(cursor.servedN, upTo) : cursor.servedN,
  };
  return counted;
}

/** An entry's line. Undefined where it has none. */
function lineOf(
  wallet: WalletRef,
  entry: Entry,
  record: ReturnType<typeof recordOf>,
  balance: bigint,
): Line | undefined {
  const { n, at, keyId } = entry;
  const kind = lineKindOf(entry, wallet.unit, record);
  return (
    kind && {
      ...{ wallet, n, at, kind, keyId, balance },
      model: textOf(record.model),
      status: kind === "refund" ? "" : textOf(record.status),
      amount: entry.freeDelta + entry.heldDelta,
      publicId: textOf(record.answerId) || entry.holdId,
      requestId: textOf(record.requestId),
      record: entry.record,
    }
  );
}
