// Declares what the store of monthly grants must promise. `store-documents.ts` keeps the promises.

import type { AskedGrant, MonthlyGrant } from "./monthly-grant.ts";

/**
 * The monthly grants of accounts. Each method is one transition, atomic and durable when it resolves, and may be repeated. All refuse
 * with SERVICE_UNAVAILABLE where the store is away.
 */
export interface GrantStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** An account's grant. Undefined: none. */
  find(accountId: string): Promise<MonthlyGrant | undefined>;
  /** Applies `changedGrant`, and answers its result. */
  change(accountId: string, asked: AskedGrant, now: number): Promise<MonthlyGrant | undefined>;
  /** At most `limit` grants that are due at `now`, by time, then account. Without `after`, from the first. By an index. */
  due(page: {
    now: number;
    after: MonthlyGrant | undefined;
    limit: number;
  }): Promise<MonthlyGrant[]>;
  /** Moves an account's grant on to its next month. One that is there already, or later, stays. */
  moveOn(accountId: string, dueAt: number): Promise<void>;
  /** Removes an account's grant. */
  erase(accountId: string): Promise<void>;
}
