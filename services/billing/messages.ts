import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RefusalError } from "#kit/errors.ts";
import {
  EntryKind,
  type Entry as EntryMessage,
  EntrySchema,
  HoldKind,
  type Hold as HoldMessage,
  HoldSchema,
  HoldState,
  type Outcome as OutcomeMessage,
  OutcomeSchema,
  Unit,
  type Wallet as WalletMessage,
  WalletSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Outcome, Refused } from "./operations.ts";
import type { WalletHold } from "./store.ts";
import {
  type Entry,
  type EntryKind as EntryKindName,
  type HoldKind as HoldKindName,
  spentThisMonth,
  type Unit as UnitName,
  type Wallet,
  type WalletRef,
} from "./wallet.ts";

const units: Record<UnitName, Unit> = { usd_micros: Unit.USD_MICROS, credits: Unit.CREDITS };
const holdKinds: Record<HoldKindName, HoldKind> = {
  text: HoldKind.TEXT,
  speech: HoldKind.SPEECH,
  job: HoldKind.JOB,
};
const entryKinds: Record<EntryKindName, EntryKind> = {
  grant: EntryKind.GRANT,
  hold: EntryKind.HOLD,
  settle: EntryKind.SETTLE,
  release: EntryKind.RELEASE,
  extend: EntryKind.EXTEND,
};
const holdStates: Record<"open" | "settled" | "released", HoldState> = {
  open: HoldState.OPEN,
  settled: HoldState.SETTLED,
  released: HoldState.RELEASED,
};

/** The wire's unit. */
export function unitMessage(unit: UnitName): Unit {
  return units[unit];
}

/** The wire's state of a hold. */
export function holdStateMessage(state: "open" | "settled" | "released"): HoldState {
  return holdStates[state];
}

/** A wallet as the wire shows it at `now` (ms since the epoch). */
export function walletMessage(wallet: Wallet, now: number): WalletMessage {
  return create(WalletSchema, {
    unit: units[wallet.unit],
    available: wallet.free + wallet.held,
    reserved: wallet.held,
    spendable: wallet.free,
    monthSpent: spentThisMonth(wallet, now),
    granted: wallet.granted,
    spent: wallet.spent,
  });
}

/** An open hold as the wire shows it. */
export function holdMessage(hold: WalletHold): HoldMessage {
  return create(HoldSchema, {
    holdId: hold.holdId,
    accountId: hold.wallet.accountId,
    unit: units[hold.wallet.unit],
    amount: hold.amount,
    kind: holdKinds[hold.holdKind],
    keyId: hold.keyId,
    ref: hold.ref,
    openTime: timestampFromMs(hold.openedAt),
    checkTime: timestampFromMs(hold.checkAt),
  });
}

/** An entry as the wire shows it. */
export function entryMessage(wallet: WalletRef, entry: Entry): EntryMessage {
  return create(EntrySchema, {
    accountId: wallet.accountId,
    unit: units[wallet.unit],
    number: BigInt(entry.n),
    operationId: entry.operationId,
    kind: entryKinds[entry.kind],
    holdId: entry.holdId,
    freeDelta: entry.freeDelta,
    heldDelta: entry.heldDelta,
    spentDelta: entry.spentDelta,
    ref: entry.ref,
    time: timestampFromMs(entry.at),
    hash: entry.hash,
  });
}

/** How a hold was opened, as the wire shows it. */
export function reserved({ state, held, replayed }: Extract<Outcome, { kind: "reserved" }>) {
  return { state: holdStates[state], heldAmount: held, replayed };
}

/** A refusal's error, with the registry's text. */
export function refusalError({ reason, metadata }: Refused): RefusalError {
  return new RefusalError(reason, { metadata });
}

/** An outcome of one operation among several; `operation` says which of the closing answers it is. */
export function outcomeMessage(operation: string | undefined, outcome: Outcome): OutcomeMessage {
  switch (outcome.kind) {
    case "refused": {
      const { reason, message, metadata } = refusalError(outcome);
      return create(OutcomeSchema, {
        outcome: { case: "refusal", value: { reason, message, metadata: { ...metadata } } },
      });
    }
    case "reserved":
      return create(OutcomeSchema, {
        outcome: { case: "reserve", value: reserved(outcome) },
      });
    case "closed": {
      const value = {
        state: holdStates[outcome.state],
        chargedAmount: outcome.charged,
        replayed: outcome.replayed,
      };
      return create(OutcomeSchema, {
        outcome: { case: operation === "settle" ? "settle" : "release", value },
      });
    }
    case "granted":
    case "extended":
      throw new Error(`no ${outcome.kind} outcome travels among others`);
  }
}
