// Checks in an audit that usage counts what the journal says: each row of the rollups, and each key's total. `audit.ts` checks
// wallets in the same pass.

import { countedAtOnce } from "../base/limits.ts";
import type { Difference } from "../ledger/audit.ts";
import type { LedgerStore, WalletSnapshot } from "../ledger/store.ts";
import type { Entry } from "../ledger/wallet.ts";
import { noServed, servedName, servedStepOf } from "./served.ts";
import { addSums, keyStepOf, noSums, recordOf, type Sums, slotName, stepOf } from "./usage.ts";
import { entriesBetween } from "./usage-counting.ts";
import type { UsageStore } from "./usage-store.ts";

/** Compares a wallet's rollup with its journal. */
export interface UsageAudit {
  /** The same journal. Its entries are added up here too, as they are read. */
  snapshot: WalletSnapshot;
  /** To be read once the journal was read to its end: each row that differs from its entries. */
  differences(): AsyncIterable<Difference>;
  /** To be read after that: each key's total when the snapshot was taken. */
  keys(): AuditedKey[];
}

/** A key's total, by the journal and by the rollup. */
export interface AuditedKey {
  keyId: string;
  requests: bigint;
  spent: bigint;
  rollupRequests: bigint;
  rollupSpent: bigint;
}

/** A stored row, and the sums of its entries. */
interface ComparedRow<Name extends string> {
  keyId: string;
  stored: Sums<Name>;
  computed: Sums<Name>;
  /** The part of both that was written after the snapshot. */
  since: Sums<Name>;
  /** Number of the last entry that it counts. */
  n: number;
}

/** The rows of one kind, by their names. */
class ComparedRows<Name extends string> {
  readonly rows = new Map<string, ComparedRow<Name>>();
  /** Sums of nothing. */
  readonly #zero: Sums<Name>;
  /** Number of the last entry that a row counts which is not stored. */
  readonly #counted: number;
  readonly #lastEntry: number;

  constructor(zero: Sums<Name>, counted: number, lastEntry: number) {
    this.#zero = zero;
    this.#counted = counted;
    this.#lastEntry = lastEntry;
  }

  /** Notes a stored row. */
  store(name: string, keyId: string, stored: Sums<Name>, n: number): ComparedRow<Name> {
    const [zero, last] = [this.#zero, Math.max(n, this.#counted)];
    const row = { keyId, stored, computed: zero, since: zero, n: last };
    this.rows.set(name, row);
    return row;
  }

  /** Adds an entry, where its row counts it. */
  add(name: string, keyId: string, sums: Sums<Name>, n: number): void {
    const row = this.rows.get(name) ?? this.store(name, keyId, this.#zero, 0);
    if (n > row.n) return;
    row.computed = addSums(row.computed, sums);
    if (n > this.#lastEntry) row.since = addSums(row.since, sums);
  }
}

/**
 * Begins an audit of the rollup. Rows are read before the journal, and are written meanwhile. Each shows which of its entries it
 * counts, and is compared with only those.
 */
export async function beginUsageAudit(
  snapshot: WalletSnapshot,
  { usage, store }: { usage: UsageStore; store: Pick<LedgerStore, "entries"> },
): Promise<UsageAudit> {
  const { ref, lastEntry } = snapshot;
  const { n: counted, keysN, servedN } = await usage.cursor(ref);
  const hours = new ComparedRows(noSums, counted, lastEntry);
  const totals = new ComparedRows({ spent: 0n }, keysN, lastEntry);
  const served = new ComparedRows(noServed, servedN, lastEntry);
  for await (const page of usage.rows(ref)) {
    for (const { slot, sums, n } of page) hours.store(slotName(slot), slot.keyId, sums, n);
  }
  for await (const page of usage.servedRows(ref)) {
    for (const { slot, sums, n } of page) served.store(servedName(slot), slot.keyId, sums, n);
  }
  for (const { keyId, spent, n } of await usage.keyTotals(ref)) {
    totals.store(`key ${keyId}`, keyId, { spent }, n);
  }
  const all = [hours, totals, served];
  const add = (entries: readonly Entry[]) => {
    for (const entry of entries) {
      const { n, keyId } = entry;
      const record = recordOf(entry);
      const step = stepOf(entry, ref.unit, record);
      if (step) {
        hours.add(slotName(step.slot), keyId, step.sums, n);
        const { slot, sums } = servedStepOf(step, record);
        served.add(servedName(slot), keyId, sums, n);
      }
      const spent = keyStepOf(entry)?.spent;
      if (spent !== undefined) totals.add(`key ${keyId}`, keyId, { spent }, n);
    }
  };
  async function* tapped(): AsyncIterable<readonly Entry[]> {
    for await (const page of snapshot.entries()) {
      add(page);
      yield page;
    }
  }
  return {
    snapshot: { ...snapshot, entries: tapped },
    async *differences() {
      // Written after the snapshot, and counted before the rows were read.
      let last = lastEntry;
      for (const { rows } of all) for (const { n } of rows.values()) last = Math.max(last, n);
      for (let after = lastEntry; after < last; after += countedAtOnce) {
        add(await entriesBetween(store, ref, after, Math.min(after + countedAtOnce, last)));
      }
      for (const { rows } of all) {
        for (const [name, { stored, computed }] of rows) {
          const [recorded, expected] = [describe(name, stored), describe(name, computed)];
          if (recorded === expected) continue;
          yield { field: "usage", recorded, computed: expected, entryNumber: 0 };
        }
      }
    },
    keys: () => keysOf(hours.rows.values()),
  };
}

function keysOf(rows: Iterable<ComparedRow<"requests" | "spent">>): AuditedKey[] {
  const keys = new Map<string, AuditedKey>();
  for (const { keyId, stored, computed, since } of rows) {
    const key = keys.get(keyId) ?? {
      ...{ keyId, requests: 0n, spent: 0n, rollupRequests: 0n, rollupSpent: 0n },
    };
    keys.set(keyId, key);
    key.requests += computed.requests - since.requests;
    key.spent += computed.spent - since.spent;
    key.rollupRequests += stored.requests - since.requests;
    key.rollupSpent += stored.spent - since.spent;
  }
  // A key that began after the snapshot has nothing in it.
  const isAnything = (key: AuditedKey) =>
    [key.requests, key.spent, key.rollupRequests, key.rollupSpent].some((one) => one !== 0n);
  return [...keys.values()].filter(isAnything).sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
}

function describe(name: string, sums: Readonly<Record<string, bigint>>): string {
  return `${name} ${Object.entries(sums)
    .map(([sum, value]) => `${sum} ${value}`)
    .join(" ")}`;
}
