// Proves that a wallet matches its journal: recomputes it from the entries alone and names each difference. `genmesh ledger
// audit` and the console run it. `audit-usage.ts` does the same for usage.

import { maxTimeMs } from "../base/limits.ts";
import { entryHash } from "./change.ts";
import type { WalletSnapshot } from "./store.ts";
import {
  advanceHold,
  advanceKey,
  advanceWallet,
  chargeTold,
  countsForKey,
  type Entry,
  emptyWallet,
  type KeyCounter,
  type OpenHold,
  takeBackOf,
  type Wallet,
} from "./wallet.ts";

/** A value that does not match the journal. */
export interface Difference {
  field:
    | "free"
    | "held"
    | "spent"
    | "granted"
    | "month"
    | "key"
    | "hold"
    | "usage"
    | "refund"
    | "sequence"
    | "chain";
  /** The value in the wallet, or in the entry. */
  recorded: string;
  /** The value computed from the entries. */
  computed: string;
  /** The entry's number where one entry is at fault, otherwise 0. */
  entryNumber: number;
}

/** The audits' reads so far. */
export interface AuditRead {
  entries: number;
  /**
   * The wallet computed from the entries of the last one. Undefined before they were read to their end, or where they have no wallet.
   */
  computed?: Wallet | undefined;
}

/**
 * Recomputes a wallet from its entries alone and gives each difference. First come entries that are missing, moved, changed or not
 * allowed, then balances, key counters and open holds. `read` is updated as entries are read. An audit cannot find a journal that was
 * rewritten from some entry to its end together with the wallet. Against that, note a wallet's last hash elsewhere from time to time.
 */
export async function* auditWallet(
  snapshot: WalletSnapshot,
  read: AuditRead,
): AsyncIterable<Difference> {
  read.computed = undefined;
  if (!snapshot.wallet) {
    const left = `${snapshot.lastEntry} entries, ${snapshot.holds.length} open holds`;
    yield { field: "sequence", recorded: "no wallet", computed: left, entryNumber: 0 };
    return;
  }
  const image: Image = {
    wallet: emptyWallet(snapshot.ref),
    holds: new Map(),
    keys: new Map(),
    refunded: new Set(),
    taken: new Map(),
  };
  for await (const page of snapshot.entries()) {
    for (const entry of page) {
      read.entries++;
      yield* auditEntry(image, entry);
      if (entry.kind === "refund") yield* auditRefund(image, entry, snapshot);
      if (entry.kind === "grant" && entry.amount < 0n) yield* auditTakeBack(image, entry, snapshot);
    }
  }
  read.computed = image.wallet;
  yield* compareWallets(snapshot.wallet, image.wallet);
  yield* compareRows("hold", snapshot.holds, image.holds, (hold) => hold.holdId, describeHold);
  const { keys } = snapshot;
  yield* compareRows("key", keys, asStored(image.keys, keys), (key) => key.keyId, describeKey);
}

/** The state after the entries so far. */
interface Image {
  wallet: Wallet;
  holds: Map<string, OpenHold>;
  keys: Map<string, KeyCounter>;
  /** Numbers of the charges that were refunded. They are few. */
  refunded: Set<number>;
  /** The sums that were taken back of grants, by the grants' numbers. They are few too. */
  taken: Map<number, bigint>;
}

/** A refund names a charge of its own hold and key. The charge came before it, was at least as high, and was not refunded yet. */
async function* auditRefund(
  { refunded }: Image,
  entry: Entry,
  journal: Pick<WalletSnapshot, "entry">,
): AsyncIterable<Difference> {
  const told = chargeTold(entry);
  const charge = told && (await journal.entry(told.refundOf));
  const fits =
    charge !== undefined &&
    charge.n < entry.n &&
    (charge.kind === "settle" || charge.kind === "draw") &&
    charge.holdId === entry.holdId &&
    charge.keyId === entry.keyId &&
    charge.at === told?.chargedMs &&
    charge.spentDelta >= entry.amount &&
    !refunded.has(charge.n);
  if (told) refunded.add(told.refundOf);
  if (fits) return;
  const recorded = `${entry.amount} of entry ${told?.refundOf ?? "unknown"}`;
  const computed = charge ? `${charge.kind} ${charge.spentDelta}` : "no such charge";
  yield { field: "refund", recorded, computed, entryNumber: entry.n };
}

/** Taking a grant back names a grant of its own wallet that came before it. All of them together take at most the grant's amount. */
async function* auditTakeBack(
  { taken }: Image,
  entry: Entry,
  journal: Pick<WalletSnapshot, "entry">,
): AsyncIterable<Difference> {
  const named = takeBackOf(entry);
  const grant = named === undefined ? undefined : await journal.entry(named);
  const sum = (taken.get(named ?? 0) ?? 0n) - entry.amount;
  taken.set(named ?? 0, sum);
  if (grant?.kind === "grant" && grant.n < entry.n && grant.amount >= sum) return;
  const recorded = `${sum} taken back of entry ${named ?? "unknown"}`;
  const computed = grant ? `${grant.kind} ${grant.amount}` : "no such grant";
  yield { field: "granted", recorded, computed, entryNumber: entry.n };
}

function* auditEntry(image: Image, entry: Entry): Iterable<Difference> {
  const { wallet } = image;
  const entryNumber = entry.n;
  if (entry.n !== wallet.n + 1) {
    yield { field: "sequence", recorded: `${entry.n}`, computed: `${wallet.n + 1}`, entryNumber };
  }
  // Compared with the hash in the entry before it, so that one changed entry is one difference, and not all after it.
  const hash = entryHash(wallet.hash, wallet, entry);
  if (entry.hash !== hash) {
    yield { field: "chain", recorded: entry.hash, computed: hash, entryNumber };
  }
  const hold = image.holds.get(entry.holdId);
  const recorded = deltas(entry.freeDelta, entry.heldDelta, entry.spentDelta);
  const computed = allowed(entry, hold);
  if (recorded !== computed) {
    const field = entry.kind === "grant" ? "granted" : "hold";
    yield { field, recorded: `${entry.kind} ${recorded}`, computed, entryNumber };
  }
  advance(image, entry, hold);
}

function advance(image: Image, entry: Entry, hold: OpenHold | undefined): void {
  const sound = entry.at >= 0 && entry.at <= maxTimeMs;
  const timed = sound ? entry : { ...entry, at: image.wallet.at };
  image.wallet = advanceWallet(image.wallet, timed);
  const after = advanceHold(hold, timed);
  if (after) image.holds.set(entry.holdId, after);
  else image.holds.delete(entry.holdId);
  if (countsForKey(image.wallet.unit, timed)) {
    image.keys.set(entry.keyId, advanceKey(image.keys.get(entry.keyId), timed));
  }
}

/** The deltas that an entry of this kind and amount may have. */
function allowed({ kind, amount, spentDelta }: Entry, hold: OpenHold | undefined): string {
  switch (kind) {
    case "grant":
      // An amount below 0 takes an earlier grant back.
      return amount === 0n ? "no such grant" : deltas(amount, 0n, 0n);
    case "hold":
      return hold || amount < 0n ? "no such hold" : deltas(-amount, amount, 0n);
    case "settle":
    case "release": {
      if (!hold || amount < 0n) return "no open hold";
      const charged = kind === "release" ? 0n : amount < hold.amount ? amount : hold.amount;
      return deltas(hold.amount - charged, -hold.amount, charged);
    }
    case "draw": {
      if (amount < 0n) return "no such draw";
      // Its hold was closed before. The charge is taken from the free balance, all of it or nothing.
      if (!hold) return spentDelta === 0n ? deltas(0n, 0n, 0n) : deltas(-amount, 0n, amount);
      const charged = amount < hold.amount ? amount : hold.amount;
      return deltas(hold.amount - charged, -hold.amount, charged);
    }
    case "refund":
      return amount > 0n ? deltas(amount, 0n, -amount) : "no such refund";
    case "extend":
      return hold ? deltas(0n, 0n, 0n) : "no open hold";
    default:
      return "no such kind";
  }
}

function deltas(free: bigint, held: bigint, spent: bigint): string {
  return `free ${free} held ${held} spent ${spent}`;
}

function* compareWallets(recorded: Wallet, computed: Wallet): Iterable<Difference> {
  const month = (w: Wallet) => `${w.month.period} ${w.month.spent}`;
  const rows: [Difference["field"], (wallet: Wallet) => string][] = [
    ["granted", (w) => `${w.granted}`],
    ["free", (w) => `${w.free}`],
    ["held", (w) => `${w.held}`],
    ["spent", (w) => `${w.spent}`],
    ["month", month],
    ["hold", (w) => `${w.openHolds} open`],
    ["sequence", (w) => `${w.n} at ${w.at}`],
    ["chain", (w) => w.hash],
  ];
  for (const [field, say] of rows) {
    if (say(recorded) === say(computed)) continue;
    yield { field, recorded: say(recorded), computed: say(computed), entryNumber: 0 };
  }
}

/** Compares stored rows with computed ones, by id. A missing row is "none". */
function* compareRows<T>(
  field: "hold" | "key",
  stored: readonly T[],
  computed: ReadonlyMap<string, T>,
  idOf: (row: T) => string,
  describe: (row: T) => string,
): Iterable<Difference> {
  const left = new Map(computed);
  for (const row of stored) {
    const other = left.get(idOf(row));
    left.delete(idOf(row));
    const said = other ? describe(other) : `${idOf(row)} none`;
    if (said !== describe(row)) {
      yield { field, recorded: describe(row), computed: said, entryNumber: 0 };
    }
  }
  for (const [id, row] of left) {
    yield { field, recorded: `${id} none`, computed: describe(row), entryNumber: 0 };
  }
}

function describeHold(h: OpenHold): string {
  return `${h.holdId} ${h.amount} ${h.holdKind} ${h.keyId} ${h.ref} ${h.openedAt} ${h.checkAt} ${h.extensions}`;
}

/** Without totals where the stored counter has none. An earlier release wrote it, and no limit has needed them yet. */
function asStored(
  computed: ReadonlyMap<string, KeyCounter>,
  stored: readonly KeyCounter[],
): ReadonlyMap<string, KeyCounter> {
  const keys = new Map(computed);
  for (const { keyId, totals } of stored) {
    const key = keys.get(keyId);
    if (key && !totals) keys.set(keyId, { ...key, totals });
  }
  return keys;
}

function describeKey(k: KeyCounter): string {
  const counted = `${k.keyId} ${k.month.period} spent ${k.month.spent} held ${k.held}`;
  if (!k.totals) return counted;
  const { day, week, ever } = k.totals;
  return `${counted} day ${day.period} ${day.spent} week ${week.period} ${week.spent} ever ${ever}`;
}
