import type { SqliteDatabase } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import {
  type KeyLimit,
  spentThisMonth,
  type Unit,
  type WalletRef,
} from "../../services/billing/ledger/wallet.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { createModel, type Model, say } from "./ledger.model.ts";

/** A fault for the next transition. */
export type Fault = "none" | "crash" | "lost reply";

/** A database in which a test can break a transaction or lose its answer. */
export interface FaultyDatabase extends SqliteDatabase {
  /** Prepares a fault for the next transaction. A crash comes at its `statement`-th change, if it has that many. */
  arm(fault: Fault, statement: number): void;
  /** Has the fault come? Removes it in any case. */
  struck(): boolean;
}

export function faulty(db: SqliteDatabase): FaultyDatabase {
  let fault: Fault = "none";
  let left = 0;
  let came = false;
  const strike = (message: string): never => {
    fault = "none";
    came = true;
    throw new Error(message);
  };
  const dying = (tx: SqlTransaction): SqlTransaction => ({
    ...tx,
    run: (sql, ...values) => {
      if (fault === "crash" && left-- === 0) strike("died between two steps");
      return tx.run(sql, ...values);
    },
  });
  return {
    ...db,
    async write(work) {
      const result = await db.write((tx) => work(dying(tx)));
      if (fault === "lost reply") strike("the reply was lost");
      return result;
    },
    arm(next, statement) {
      fault = next;
      left = statement;
      came = false;
    },
    struck() {
      fault = "none";
      return came;
    },
  };
}

/** The statistics of a run, or the first difference between ledger and model. */
export interface Run {
  operations: number;
  faults: number;
  /** The number of each outcome, in the model's words without amounts. */
  outcomes: Record<string, number>;
  difference?: string;
}

/** Days at the borders of months, in ms. */
const dayMs = 86_400_000;
const start = Date.UTC(2026, 0, 20);
/** One sequence of this number begins with a crowd of holds, and takes as long as a hundred others. */
const crowdedEvery = 500;

/** Runs sequences of operations from `seed` on against the store and the model, until the two differ. */
export async function runSequences(
  store: LedgerStore,
  faults: FaultyDatabase | undefined,
  options: { seed: number; sequences: number },
): Promise<Run> {
  const run: Run = { operations: 0, faults: 0, outcomes: {} };
  for (let i = 0; i < options.sequences && !run.difference; i++) {
    const seed = options.seed + i;
    const sequence = new Sequence(store, faults, seed, run);
    const difference = await sequence.play(seed % crowdedEvery === 1);
    if (difference) run.difference = `seed ${seed}: ${difference}`;
  }
  return run;
}

class Sequence {
  readonly #store: LedgerStore;
  readonly #faults: FaultyDatabase | undefined;
  readonly #chance: Chance;
  readonly #run: Run;
  readonly #wallet: WalletRef;
  readonly #model: Model;
  #now = start;
  #made: Operation[] = [];

  constructor(store: LedgerStore, faults: FaultyDatabase | undefined, seed: number, run: Run) {
    this.#store = store;
    this.#faults = faults;
    this.#chance = chanceOf(seed);
    this.#run = run;
    const unit: Unit = this.#chance.likely(75) ? "usd_micros" : "credits";
    this.#wallet = { accountId: `acct_${seed}`, unit };
    this.#model = createModel(this.#wallet);
  }

  /** The first difference, if any. With `crowded` it begins with more holds than a wallet may have. */
  async play(crowded: boolean): Promise<string | undefined> {
    const crowd = crowded ? 1_003 : 0;
    for (let from = 0; from < crowd; from += 100) {
      const holds = Array.from({ length: Math.min(100, crowd - from) }, (_, i) =>
        reserveOf(`crowd_${from + i}`, 0n),
      );
      const difference = await this.#step(holds, "none");
      if (difference) return difference;
    }
    const steps = 8 + this.#chance.int(18);
    for (let step = 0; step < steps; step++) {
      this.#tick();
      const operations = Array.from({ length: 1 + this.#chance.int(4) }, () => this.#operation());
      const roll = this.#chance.int(100);
      const fault: Fault = roll < 15 ? "crash" : roll < 25 ? "lost reply" : "none";
      const difference = await this.#step(operations, this.#faults ? fault : "none");
      if (difference) return `step ${step}: ${difference}`;
    }
    return this.#audit();
  }

  /**
   * Moves the time: forward, sometimes into another month, sometimes back. Back by a little like real clocks, or far like a wrong clock.
   */
  #tick(): void {
    if (this.#chance.likely(6)) this.#now += 13 * dayMs;
    else if (this.#chance.likely(4)) this.#now -= 15 * dayMs;
    else if (this.#chance.likely(8)) this.#now = nextMonth(this.#now);
    else if (this.#chance.likely(15)) this.#now -= 120_000;
    else this.#now += this.#chance.int(3_600_000);
  }

  #operation(): Operation {
    const chance = this.#chance;
    const old = chance.pick(this.#made);
    if (old && chance.likely(25)) return chance.likely(60) ? old : this.#altered(old);
    const made = this.#fresh();
    this.#made.push(made);
    return made;
  }

  #fresh(): Operation {
    const chance = this.#chance;
    const holdId = `hold_${chance.int(7)}xxx`;
    const amount = BigInt(chance.int(120));
    const roll = chance.int(100);
    if (roll < 14) return { kind: "grant", grantId: `g${chance.int(5)}`, amount: amount + 1n };
    if (roll < 50) {
      const keyLimit = this.#limit();
      const keyId = `key_${chance.int(2)}`;
      const checkAt = this.#now + chance.int(100_000);
      const least = chance.likely(40) ? BigInt(chance.int(Number(amount) + 1)) : undefined;
      return { ...reserveOf(holdId, amount), keyId, checkAt, keyLimit, least };
    }
    if (roll < 62) return { kind: "settle", holdId, amount };
    if (roll < 70) return { kind: "release", holdId };
    if (roll < 76) return { kind: "release", holdId, isLapse: true };
    if (roll < 88) {
      const keyId = `key_${chance.int(2)}`;
      const record = chance.likely(50) ? `{"model":"chat","n":${chance.int(9)}}` : "";
      const fromFree = chance.likely(60) ? { keyLimit: this.#limit() } : undefined;
      return { kind: "draw", holdId, amount, keyId, record, fromFree };
    }
    const grants = this.#model.grants();
    if (roll < 93 && grants.length > 0) {
      const { entry, ...grant } = chance.pick(grants);
      const part = chance.likely(70) ? 1n + BigInt(chance.int(60)) : undefined;
      return {
        ...{ kind: "takeBack", ...grant, entry: chance.likely(10) ? entry + 1 : entry },
        ...{ takeBackId: `back_${chance.int(6)}`, amount: part, upTo: chance.likely(50) },
      };
    }
    const ends = this.#model.ends();
    if (roll < 97 && ends.length > 0) {
      const { entry, ...end } = chance.pick(ends);
      const isWrong = chance.likely(10);
      const part = chance.likely(50) ? 1n + BigInt(chance.int(20)) : undefined;
      const refundId = `refund_${chance.int(3)}`;
      return { kind: "refund", ...end, entry: isWrong ? entry + 1 : entry, refundId, amount: part };
    }
    const step = 1 + chance.int(3);
    return { kind: "extend", holdId, step, checkAt: this.#now + chance.int(100_000) };
  }

  #limit(): KeyLimit | undefined {
    const chance = this.#chance;
    if (!chance.likely(50)) return undefined;
    const period = chance.pick(["day", "week", "month", "ever"] as const);
    return { amount: BigInt(40 + chance.int(160)), period };
  }

  /** The same operation with one parameter wrong. */
  #altered(old: Operation): Operation {
    if (old.kind === "release") return { kind: "settle", holdId: old.holdId, amount: 7n };
    if (old.kind === "refund" || old.kind === "takeBack")
      return { ...old, amount: (old.amount ?? 0n) + 1n };
    if (old.kind === "extend") return { ...old, checkAt: old.checkAt + 1 };
    if (old.kind !== "reserve") return { ...old, amount: old.amount + 1n };
    const wrong: Partial<typeof old>[] = [
      { amount: old.amount + 1n },
      { least: old.amount },
      { keyId: "key_other" },
      { ref: "other" },
      { holdKind: "job" },
      { checkAt: old.checkAt + 1 },
      // The limit is not a part of the content, so this is the same operation.
      { keyLimit: { amount: 1n, period: "month" } },
    ];
    return { ...old, ...this.#chance.pick(wrong) };
  }

  async #step(operations: Operation[], fault: Fault): Promise<string | undefined> {
    this.#run.operations += operations.length;
    this.#faults?.arm(fault, this.#chance.int(8));
    const sent = await this.#send(operations);
    const answers = sent.flatMap(({ answered }) => answered);
    const struck = this.#faults?.struck() ?? false;
    if (struck) this.#run.faults++;
    else if (sent.some(({ answered }) => typeof answered === "string")) return `${answers}`;
    // After a crash nothing of a call is changed. After a lost reply all of it is, and the caller does not know.
    const happened = sent.filter(
      ({ answered }) => typeof answered !== "string" || fault === "lost reply",
    );
    const expected = happened.flatMap(({ part }) =>
      part.map((operation) => this.#model.apply(operation, this.#now)),
    );
    for (const outcome of expected) this.#count(outcome);
    if (!struck && `${answers}` !== `${expected}`) return `${answers} instead of ${expected}`;
    const difference = await this.#compare();
    if (difference) return difference;
    // A caller that does not know the outcome repeats the same operations.
    return struck && this.#chance.likely(80) ? this.#step(operations, "none") : undefined;
  }

  /** One or two calls at once, with the outcomes in words. Where the store failed, a text of its own. */
  #send(operations: Operation[]): Promise<{ part: Operation[]; answered: string[] | string }[]> {
    const cut = this.#chance.likely(50) ? this.#chance.int(operations.length + 1) : 0;
    const parts = [operations.slice(0, cut), operations.slice(cut)].filter((p) => p.length > 0);
    const calls = parts.map((part) =>
      this.#store.apply(this.#wallet, part, this.#now).then(
        (outcomes) => ({ part, answered: outcomes.map(say) }),
        (error) => ({ part, answered: `failed: ${error}` }),
      ),
    );
    return Promise.all(calls);
  }

  #count(outcome: string): void {
    const name = outcome.replace(/ \d+/, "");
    this.#run.outcomes[name] = (this.#run.outcomes[name] ?? 0) + 1;
  }

  async #compare(): Promise<string | undefined> {
    const wallet = await this.#store.wallet(this.#wallet);
    const figures = this.#model.figures(this.#now);
    const seen = {
      granted: Number(wallet.granted),
      free: Number(wallet.free),
      held: Number(wallet.held),
      spent: Number(wallet.spent),
      monthSpent: Number(spentThisMonth(wallet, this.#now)),
      openHolds: wallet.openHolds,
      entries: wallet.n,
    };
    if (JSON.stringify(seen) !== JSON.stringify(figures)) {
      return `${JSON.stringify(seen)} instead of ${JSON.stringify(figures)}`;
    }
    const { accountId } = this.#wallet;
    const { items } = await this.#store.holds({ accountId, limit: 1_001 });
    const holds = items.map((h) => `${h.holdId} ${h.amount} ${h.checkAt}`).sort();
    const expected = this.#model.openHolds();
    return `${holds}` === `${expected}` ? undefined : `holds ${holds} instead of ${expected}`;
  }

  async #audit(): Promise<string | undefined> {
    const count = { entries: 0 };
    for await (const snapshot of this.#store.snapshots(this.#wallet.accountId)) {
      for await (const found of auditWallet(snapshot, count)) {
        return `audit: ${JSON.stringify(found)}`;
      }
    }
    const { entries } = this.#model.figures(this.#now);
    return count.entries === entries ? undefined : `${count.entries} entries, not ${entries}`;
  }
}

function nextMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) + 60_000;
}

function reserveOf(holdId: string, amount: bigint): Extract<Operation, { kind: "reserve" }> {
  const content = { holdKind: "text", keyId: "key_0", ref: "req", checkAt: start } as const;
  return { kind: "reserve", holdId, amount, ...content };
}
