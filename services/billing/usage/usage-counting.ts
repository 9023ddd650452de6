// Sees to it that usage is counted: reads new entries of the journals, looks for alerts in them, and adds them up. Reads of usage
// wait for it, and otherwise it runs once a second. `count-entries.ts` computes the sums.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { turn } from "#kit/base/in-turns.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Alerts } from "../alerts/alerts.ts";
import type { BillingEvents } from "../base/events.ts";
import {
  behindIntervalMs,
  countedAtOnce,
  countIntervalMs,
  countingMs,
  countingRetryMs,
} from "../base/limits.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { type Entry, units, type WalletRef, walletName } from "../ledger/wallet.ts";
import { countEntries } from "./count-entries.ts";
import type { UsageCursor } from "./usage.ts";
import type { UsageStore } from "./usage-store.ts";

/** The parts that counting needs. */
export interface CountingContext {
  store: Pick<LedgerStore, "wallet" | "entries">;
  usage: UsageStore;
  alerts: Pick<Alerts, "beforeCount">;
  clock: Clock;
  events: BillingEvents;
}

/**
 * Brings rollup and lines up to the journals: before each read the part that is read, and in the background the wallets that were
 * written to. Databases of earlier releases are counted in the same way, from their first entry on.
 */
export interface Counting {
  /** Counts an account's journals to their ends, for lines. Refuses with USAGE_BEING_COUNTED where that takes long. */
  catchUp(accountId: string): Promise<void>;
  /** The same for the totals of keys and the rollup by upstream too. */
  catchUpAll(accountId: string): Promise<void>;
  /** The same for one wallet, without a limit of time. */
  catchUpWallet(wallet: WalletRef): Promise<void>;
  /** The same for as long as a call may take. False where that was too short. */
  catchUpKeys(wallet: WalletRef): Promise<boolean>;
  /** Notes that a wallet was written to. */
  note(wallet: WalletRef): void;
  /** Searches for wallets that were not counted when a process ended, then counts noted ones, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes it. */
export function createCounting(context: CountingContext): Counting {
  return new JournalCounting(context);
}

class JournalCounting implements Counting {
  readonly #context: CountingContext;
  /** Wallets that the next round counts. */
  readonly #noted = new Map<string, WalletRef>();
  readonly #running = new Map<string, Promise<boolean>>();

  constructor(context: CountingContext) {
    this.#context = context;
  }

  catchUp(accountId: string): Promise<void> {
    return this.#catchUp(accountId, false);
  }

  catchUpAll(accountId: string): Promise<void> {
    return this.#catchUp(accountId, true);
  }

  async #catchUp(accountId: string, withAll: boolean): Promise<void> {
    const mayGoOn = this.#forAMoment();
    const wallets = units.map((unit) => ({ accountId, unit }));
    const whole = await Promise.all(
      wallets.map((wallet) => this.#countAlone(wallet, mayGoOn, withAll)),
    );
    if (whole.every(Boolean)) return;
    const metadata = { retry_after_ms: `${countingRetryMs}` };
    for (const wallet of wallets) this.#noted.set(walletName(wallet), wallet);
    refuse(ErrorReason.USAGE_BEING_COUNTED, { metadata });
  }

  catchUpWallet(wallet: WalletRef): Promise<void> {
    return this.#countToEnd(wallet);
  }

  async catchUpKeys(wallet: WalletRef): Promise<boolean> {
    const isWhole = await this.#countAlone(wallet, this.#forAMoment(), true);
    if (!isWhole) this.#noted.set(walletName(wallet), wallet);
    return isWhole;
  }

  note(wallet: WalletRef): void {
    const name = walletName(wallet);
    if (!this.#noted.has(name)) this.#noted.set(name, wallet);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, events } = this.#context;
    let lookBehindAtMs = clock.steady();
    let behind: Promise<void> | undefined;
    // Beside the noted wallets. Journals of an earlier release can take minutes, and alerts of all others would wait for them.
    const lookBehind = async () => {
      try {
        await this.#countBehind(signal);
      } catch (error) {
        events.countingFailed(undefined, error);
      }
      lookBehindAtMs = clock.steady() + behindIntervalMs;
      behind = undefined;
    };
    while (!signal.aborted) {
      try {
        if (clock.steady() >= lookBehindAtMs) behind ??= lookBehind();
        await this.#countNoted(signal);
      } catch (error) {
        events.countingFailed(undefined, error);
      }
      events.uncounted(this.#noted.size);
      await clock.sleep(countIntervalMs, signal).catch(() => undefined);
    }
    await behind;
  }

  /** The parts of a wallet's journal to be counted: rollup and lines, and what was added to these later where requested. */
  async #standing(wallet: WalletRef, withAll: boolean) {
    const { store, usage } = this.#context;
    const { n: last } = await store.wallet(wallet);
    const cursor = await usage.cursor(wallet);
    return { last, cursor, isWhole: countedTo(cursor, withAll) >= last };
  }

  /** Counts a wallet up to the end of its journal, as long as `mayGoOn` is true. True where it reached the end. */
  async #count(wallet: WalletRef, mayGoOn: () => boolean, withAll: boolean): Promise<boolean> {
    const { store, usage, alerts } = this.#context;
    const { last, ...begun } = await this.#standing(wallet, withAll);
    let { cursor } = begun;
    while (countedTo(cursor, withAll) < last) {
      if (!mayGoOn()) return false;
      // The rollup first. Where an earlier release counted, only what was added later is missing.
      const from = cursor.n < last ? cursor.n : countedTo(cursor, true);
      const upTo = Math.min(from + countedAtOnce, last);
      const entries = await entriesBetween(store, wallet, from, upTo);
      // Entries that were counted before were checked for alerts then.
      if (cursor.n < last) await alerts.beforeCount(wallet, cursor.balance, entries);
      await usage.count(wallet, cursor, countEntries(wallet, cursor, entries, upTo));
      cursor = await usage.cursor(wallet);
      await turn();
    }
    return true;
  }

  /**
   * One at a time for a wallet in this process, because several would do the same work. A caller does not wait for entries that it does
   * not read.
   */
  async #countAlone(wallet: WalletRef, mayGoOn: () => boolean, withAll: boolean): Promise<boolean> {
    const running = this.#running;
    const name = walletName(wallet);
    for (let other = running.get(name); other; other = running.get(name)) {
      if ((await this.#standing(wallet, withAll)).isWhole) return true;
      if (!mayGoOn()) return false;
      await other.catch(() => false);
    }
    const counting = this.#count(wallet, mayGoOn, withAll).finally(() => running.delete(name));
    running.set(name, counting);
    return counting;
  }

  /** Counts all of a wallet, a moment at a time, so that waiting callers get their answers in time. */
  async #countToEnd(wallet: WalletRef, signal?: AbortSignal): Promise<void> {
    for (let isWhole = false; !isWhole && !signal?.aborted; ) {
      const mayGoOn = this.#forAMoment();
      isWhole = await this.#countAlone(wallet, () => !signal?.aborted && mayGoOn(), true);
    }
  }

  /** As long as a caller waits. */
  #forAMoment(): () => boolean {
    const { clock } = this.#context;
    const beganAtMs = clock.steady();
    return () => clock.steady() - beganAtMs < countingMs;
  }

  async #countNoted(signal: AbortSignal): Promise<void> {
    const wallets = [...this.#noted.values()];
    this.#noted.clear();
    for (const wallet of wallets) {
      if (signal.aborted) return;
      await this.#attempt(wallet, signal);
    }
  }

  async #countBehind(signal: AbortSignal): Promise<void> {
    let after: string | undefined;
    do {
      const { wallets, next } = await this.#context.usage.behind(after);
      for (const wallet of wallets) {
        if (signal.aborted) return;
        await this.#attempt(wallet, signal);
      }
      after = next;
    } while (after !== undefined && !signal.aborted);
  }

  async #attempt(wallet: WalletRef, signal: AbortSignal): Promise<void> {
    try {
      await this.#countToEnd(wallet, signal);
    } catch (error) {
      // The next round counts it, because alerts wait for the count.
      this.#noted.set(walletName(wallet), wallet);
      this.#context.events.countingFailed(wallet, error);
    }
  }
}

/** Number of the last entry that is counted: in rollup and lines, or in the totals of keys and the rollup by upstream too. */
function countedTo({ n, keysN, servedN }: UsageCursor, withAll: boolean): number {
  return withAll ? Math.min(n, keysN, servedN) : n;
}

/**
 * The entries after a number, up to another, in their order. Numbers have no gaps. Where some are still missing, the existing ones
 * count, and an audit reports it.
 */
export async function entriesBetween(
  store: Pick<LedgerStore, "entries">,
  wallet: WalletRef,
  after: number,
  upTo: number,
): Promise<Entry[]> {
  const entries = await store.entries(wallet, { below: upTo + 1, limit: upTo - after });
  return entries.filter(({ n }) => n > after).reverse();
}
