// Declares what the store of alerts must do, in SQLite and in MongoDB. `store-documents.ts` does it, and `alerts.ts` is its only
// user.

import type { Alert, AlertSettings } from "./alert.ts";

/** Which waiting alerts. */
export interface WaitingQuery {
  /** Of accounts whose ids follow this one. */
  afterAccount: string;
  /** The most accounts. */
  accounts: number;
  /** The most alerts of each account. */
  each: number;
}

/**
 * The settings of accounts for their alerts, and the alerts that were found. Each method is one transition, atomic and durable when it
 * resolves, and may be repeated. All refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface AlertStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** An account's settings. Empty where it set nothing. */
  settings(accountId: string): Promise<AlertSettings>;
  /** Changes what an account set; answers it. `change` may be called more than once. */
  change(
    accountId: string,
    change: (before: AlertSettings) => AlertSettings,
  ): Promise<AlertSettings>;
  /**
   * Writes alerts down; one whose id is there already stays as it is, ended or not. Answers how many were left out, since their
   * account has {@link maxAlertsKept} already.
   */
  add(alerts: readonly Alert[]): Promise<number>;
  /** Alerts that have not ended, account by account, each account's oldest first. Reads these and nothing else. */
  waiting(query: WaitingQuery): Promise<Alert[]>;
  /** It was handed over, or has no receiver. */
  end(alertId: string): Promise<void>;
  /** Forgets up to `limit` that have ended and whose time is over. */
  forget(now: number, limit: number): Promise<void>;
  /** Erases what an account set, and its alerts. */
  erase(accountId: string): Promise<void>;
}
