import type { Difference } from "./audit.ts";
import { countedAtOnce } from "./limits.ts";
import type { LedgerStore, WalletSnapshot } from "./store.ts";
import { addSums, keyStepOf, noSums, slotName, stepOf, sumNames, type UsageSums } from "./usage.ts";
import { entriesBetween } from "./usage-counting.ts";
import type { UsageStore } from "./usage-store.ts";
import type { Entry } from "./wallet.ts";

/** Compares a wallet's rollup with its journal. */
export interface UsageAudit {
  /** The same journal; what is read of it is added up here too. */
  snapshot: WalletSnapshot;
  /** Once the journal was read to its end: each row that is not what its entries come to. */
  differences(): AsyncIterable<Difference>;
}

/** A row as it is stored, and what its entries come to. */
interface ComparedRow {
  stored: UsageSums;
  computed: UsageSums;
  /** Entries up to this number are in it. */
  n: number;
}

/**
 * Begins an audit of the rollup. Rows are read before the journal and go on being written meanwhile: each says which of its
 * entries it counts, and is compared with just those.
 */
export async function beginUsageAudit(
  snapshot: WalletSnapshot,
  { usage, store }: { usage: UsageStore; store: Pick<LedgerStore, "entries"> },
): Promise<UsageAudit> {
  const { ref, lastEntry } = snapshot;
  const { n: counted, keysN } = await usage.cursor(ref);
  const rows = new Map<string, ComparedRow>();
  for await (const page of usage.rows(ref)) {
    for (const { slot, sums, n } of page) {
      rows.set(slotName(slot), { stored: sums, computed: noSums, n: Math.max(n, counted) });
    }
  }
  for (const { keyId, spent, n } of await usage.keyTotals(ref)) {
    const stored = { ...noSums, spent };
    rows.set(totalName(keyId), { stored, computed: noSums, n: Math.max(n, keysN) });
  }
  const addTo = (name: string, n: number, sums: UsageSums, upTo: number) => {
    const row = rows.get(name) ?? { stored: noSums, computed: noSums, n: upTo };
    rows.set(name, row);
    if (n <= row.n) row.computed = addSums(row.computed, sums);
  };
  const add = (entries: readonly Entry[]) => {
    for (const entry of entries) {
      const { n } = entry;
      const step = stepOf(entry, ref.unit);
      if (step) addTo(slotName(step.slot), n, step.sums, counted);
      const keyStep = keyStepOf(entry);
      if (!keyStep) continue;
      addTo(totalName(keyStep.keyId), n, { ...noSums, spent: keyStep.spent }, keysN);
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
  };
}

/** No slot's name begins so: those begin with their hour. */
function totalName(keyId: string): string {
  return `key ${keyId}`;
}

function describe(name: string, sums: UsageSums): string {
  return `${name} ${sumNames.map((sum) => `${sum} ${sums[sum]}`).join(" ")}`;
}
