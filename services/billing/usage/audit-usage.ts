import { countedAtOnce } from "../base/limits.ts";
import type { Difference } from "../ledger/audit.ts";
import type { LedgerStore, WalletSnapshot } from "../ledger/store.ts";
import type { Entry } from "../ledger/wallet.ts";
import { addSums, keyStepOf, noSums, slotName, stepOf, sumNames, type UsageSums } from "./usage.ts";
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
interface ComparedRow {
  /** The key of an hour. Undefined for the total of a key, which is no part of the hours. */
  keyId: string | undefined;
  stored: UsageSums;
  computed: UsageSums;
  /** The part of both that was written after the snapshot. */
  since: UsageSums;
  /** Number of the last entry that it counts. */
  n: number;
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
  const { n: counted, keysN } = await usage.cursor(ref);
  const rows = new Map<string, ComparedRow>();
  const rowOf = (keyId: string | undefined, stored: UsageSums, n: number): ComparedRow => {
    return { keyId, stored, computed: noSums, since: noSums, n };
  };
  for await (const page of usage.rows(ref)) {
    for (const { slot, sums, n } of page) {
      rows.set(slotName(slot), rowOf(slot.keyId, sums, Math.max(n, counted)));
    }
  }
  for (const { keyId, spent, n } of await usage.keyTotals(ref)) {
    rows.set(totalName(keyId), rowOf(undefined, { ...noSums, spent }, Math.max(n, keysN)));
  }
  const addTo = (name: string, n: number, sums: UsageSums, added: () => ComparedRow) => {
    const row = rows.get(name) ?? added();
    rows.set(name, row);
    if (n > row.n) return;
    row.computed = addSums(row.computed, sums);
    if (n > lastEntry) row.since = addSums(row.since, sums);
  };
  const add = (entries: readonly Entry[]) => {
    for (const entry of entries) {
      const { n } = entry;
      const step = stepOf(entry, ref.unit);
      if (step) {
        const { slot, sums } = step;
        addTo(slotName(slot), n, sums, () => rowOf(slot.keyId, noSums, counted));
      }
      const keyStep = keyStepOf(entry);
      if (!keyStep) continue;
      const sums = { ...noSums, spent: keyStep.spent };
      addTo(totalName(keyStep.keyId), n, sums, () => rowOf(undefined, noSums, keysN));
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
      for (const { n } of rows.values()) last = Math.max(last, n);
      for (let after = lastEntry; after < last; after += countedAtOnce) {
        add(await entriesBetween(store, ref, after, Math.min(after + countedAtOnce, last)));
      }
      for (const [name, { stored, computed }] of rows) {
        const [recorded, expected] = [describe(name, stored), describe(name, computed)];
        if (recorded === expected) continue;
        yield { field: "usage", recorded, computed: expected, entryNumber: 0 };
      }
    },
    keys: () => keysOf(rows.values()),
  };
}

function keysOf(rows: Iterable<ComparedRow>): AuditedKey[] {
  const keys = new Map<string, AuditedKey>();
  for (const { keyId, stored, computed, since } of rows) {
    if (keyId === undefined) continue;
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

/** No slot's name begins like this, because those begin with their hour. */
function totalName(keyId: string): string {
  return `key ${keyId}`;
}

function describe(name: string, sums: UsageSums): string {
  return `${name} ${sumNames.map((sum) => `${sum} ${sums[sum]}`).join(" ")}`;
}
