// Lists the entries of an account for operators. The account's two wallets have a journal each, so this merges two.

import { broken } from "./requests.ts";
import type { LedgerStore, Page } from "./store.ts";
import { type Entry, units, type WalletRef } from "./wallet.ts";

/** An entry and its wallet. */
export interface WalletEntry {
  wallet: WalletRef;
  entry: Entry;
}

/** A query for entries of an account, over both of its wallets. */
export interface AccountEntriesQuery {
  accountId: string;
  /** Only entries of this hold. */
  holdId?: string | undefined;
  limit: number;
  /** {@link Page.next} of the page before. */
  after?: string | undefined;
}

/**
 * Entries of both wallets of an account, newest first. Each wallet's times only rise, so two journals merge like two sorted lists. The
 * cursor is a place in each.
 */
export async function readAccountEntries(
  store: LedgerStore,
  { accountId, holdId, limit, after }: AccountEntriesQuery,
): Promise<Page<WalletEntry>> {
  const below = parseCursor(after);
  const lists = await Promise.all(
    units.map(async (unit, at) => {
      const wallet = { accountId, unit };
      const query = { holdId, below: below[at], limit: limit + 1 };
      return (await store.entries(wallet, query)).map((entry) => ({ wallet, entry }));
    }),
  );
  const merged = lists.flat().sort((a, b) => b.entry.at - a.entry.at);
  const items = merged.slice(0, limit);
  if (merged.length <= limit) return { items, next: undefined };
  const last = units.map(
    (unit, at) => items.findLast(({ wallet }) => wallet.unit === unit)?.entry.n ?? below[at],
  );
  return { items, next: last.map((n) => n ?? "").join(".") };
}

/** For each unit the entry number below which to go on. Undefined: from the newest. */
function parseCursor(cursor: string | undefined): (number | undefined)[] {
  if (cursor === undefined) return [];
  const parts = /^(\d{0,15})\.(\d{0,15})$/.exec(cursor)?.slice(1) ?? broken("page_token");
  return parts.map((part) => (part === "" ? undefined : Number(part)));
}
