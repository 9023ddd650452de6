import type { Clock } from "#kit/clock.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { turn } from "#kit/in-turns.ts";
import type { Alerts } from "./alerts.ts";
import type { BillingEvents } from "./events.ts";
import {
  behindIntervalMs,
  countedAtOnce,
  countIntervalMs,
  countingMs,
  countingRetryMs,
} from "./limits.ts";
import type { LedgerStore } from "./store.ts";
import { countEntries } from "./usage.ts";
import type { UsageStore } from "./usage-store.ts";
import { type Entry, units, type WalletRef, walletName } from "./wallet.ts";

/** What counting needs. */
export interface CountingContext {
  store: Pick<LedgerStore, "wallet" | "entries">;
  usage: UsageStore;
  alerts: Pick<Alerts, "beforeCount">;
  clock: Clock;
  events: BillingEvents;
}

/**
 * Brings rollup and lines up to the journals: before each read what that reads, and behind the writers' backs what was written
 * to. Databases of earlier releases are counted so too, from their first entry on.
 */
export interface Counting {
  /** Counts an account's journals to their ends. Refuses with USAGE_BEING_COUNTED where that takes long. */
  catchUp(accountId: string): Promise<void>;
  /** The same for one wallet and the totals of its keys, however long it takes. */
  catchUpWallet(wallet: WalletRef): Promise<void>;
  /** The same for as long as a call may take; false where that was too short. */
  catchUpKeys(wallet: WalletRef): Promise<boolean>;
  /** A wallet was written to. */
  note(wallet: WalletRef): void;
  /** Looks for wallets that were not counted when a process ended, then counts what is noted, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes it. */
export function createCounting({ store, usage, alerts, clock, events }: CountingContext): Counting {
  const noted = new Map<string, WalletRef>();
  const running = new Map<string, Promise<boolean>>();

  /** How much of a wallet's journal is to be counted: rollup and lines, and the totals of its keys where asked for. */
  async function standing(wallet: WalletRef, withKeys: boolean) {
    const { n: last } = await store.wallet(wallet);
    const cursor = await usage.cursor(wallet);
    return { last, cursor, isWhole: cursor.n >= last && (!withKeys || cursor.keysN >= last) };
  }

  /** Counts a wallet up to where its journal is now, for as long as `mayGoOn` says; true where it is there. */
  async function count(
    wallet: WalletRef,
    mayGoOn: () => boolean,
    withKeys: boolean,
  ): Promise<boolean> {
    const { last, ...begun } = await standing(wallet, withKeys);
    let { cursor } = begun;
    while (cursor.n < last || (withKeys && cursor.keysN < last)) {
      if (!mayGoOn()) return false;
      // The rollup first: what a release before this one counted lacks the totals of keys, and nothing else.
      const from = cursor.n < last ? cursor.n : cursor.keysN;
      const upTo = Math.min(from + countedAtOnce, last);
      const entries = await entriesBetween(store, wallet, from, upTo);
      // What was counted before was looked through for alerts then.
      if (cursor.n < last) await alerts.beforeCount(wallet, cursor.balance, entries);
      await usage.count(wallet, cursor, countEntries(wallet, cursor, entries, upTo));
      cursor = await usage.cursor(wallet);
      await turn();
    }
    return true;
  }

  /** One at a time for a wallet in this process: several would do the same work. A caller does not wait for entries that it does not read. */
  async function countAlone(
    wallet: WalletRef,
    mayGoOn: () => boolean,
    withKeys: boolean,
  ): Promise<boolean> {
    const name = walletName(wallet);
    for (let other = running.get(name); other; other = running.get(name)) {
      if ((await standing(wallet, withKeys)).isWhole) return true;
      if (!mayGoOn()) return false;
      await other.catch(() => false);
    }
    const counting = count(wallet, mayGoOn, withKeys).finally(() => running.delete(name));
    running.set(name, counting);
    return counting;
  }

  /** Counts all of a wallet, a moment at a time, so that what waits for it is told in time. */
  async function countToEnd(wallet: WalletRef, signal?: AbortSignal): Promise<void> {
    for (let isWhole = false; !isWhole && !signal?.aborted; ) {
      const mayGoOn = forAMoment();
      isWhole = await countAlone(wallet, () => !signal?.aborted && mayGoOn(), true);
    }
  }

  /** As long as a caller waits. */
  function forAMoment(): () => boolean {
    const beganAtMs = clock.steady();
    return () => clock.steady() - beganAtMs < countingMs;
  }

  async function countNoted(signal: AbortSignal): Promise<void> {
    const wallets = [...noted.values()];
    noted.clear();
    for (const wallet of wallets) {
      if (signal.aborted) return;
      await attempt(wallet, signal);
    }
  }

  async function countBehind(signal: AbortSignal): Promise<void> {
    let after: string | undefined;
    do {
      const { wallets, next } = await usage.behind(after);
      for (const wallet of wallets) {
        if (signal.aborted) return;
        await attempt(wallet, signal);
      }
      after = next;
    } while (after !== undefined && !signal.aborted);
  }

  async function attempt(wallet: WalletRef, signal: AbortSignal): Promise<void> {
    try {
      await countToEnd(wallet, signal);
    } catch (error) {
      // With the next look: alerts wait for what is counted.
      noted.set(walletName(wallet), wallet);
      events.countingFailed(wallet, error);
    }
  }

  return {
    async catchUp(accountId) {
      const mayGoOn = forAMoment();
      const wallets = units.map((unit) => ({ accountId, unit }));
      const whole = await Promise.all(wallets.map((wallet) => countAlone(wallet, mayGoOn, false)));
      if (whole.every(Boolean)) return;
      const metadata = { retry_after_ms: `${countingRetryMs}` };
      for (const wallet of wallets) noted.set(walletName(wallet), wallet);
      refuse(ErrorReason.USAGE_BEING_COUNTED, { metadata });
    },
    catchUpWallet: (wallet) => countToEnd(wallet),
    async catchUpKeys(wallet) {
      const isWhole = await countAlone(wallet, forAMoment(), true);
      if (!isWhole) noted.set(walletName(wallet), wallet);
      return isWhole;
    },
    note(wallet) {
      const name = walletName(wallet);
      if (!noted.has(name)) noted.set(name, wallet);
    },
    async run(signal) {
      let lookBehindAtMs = clock.steady();
      let behind: Promise<void> | undefined;
      // Beside what is noted: journals of an earlier release can take minutes, and alerts of all others would wait for them.
      const lookBehind = async () => {
        try {
          await countBehind(signal);
        } catch (error) {
          events.countingFailed(undefined, error);
        }
        lookBehindAtMs = clock.steady() + behindIntervalMs;
        behind = undefined;
      };
      while (!signal.aborted) {
        try {
          if (clock.steady() >= lookBehindAtMs) behind ??= lookBehind();
          await countNoted(signal);
        } catch (error) {
          events.countingFailed(undefined, error);
        }
        await clock.sleep(countIntervalMs, signal).catch(() => undefined);
      }
      await behind;
    },
  };
}

/**
 * The entries after a number, up to another, in their order. Numbers have no gaps: where some are missing all the same, what is
 * there counts, and an audit tells.
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
