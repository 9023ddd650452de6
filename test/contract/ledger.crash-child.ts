import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import { createMongoLedger } from "../../services/billing/ledger/store-mongo.ts";
import { createSqliteLedger } from "../../services/billing/ledger/store-sqlite.ts";
import { say } from "./ledger.model.ts";

/** One acknowledged operation as a line of JSON. Amounts are decimal texts. */
export interface Acknowledged {
  accountId: string;
  operation: Record<string, unknown>;
  outcome: string;
}

/** An operation from its JSON. */
export function revive(operation: Record<string, unknown>): Operation {
  const { amount } = operation;
  return {
    ...operation,
    ...(amount === undefined ? {} : { amount: BigInt(`${amount}`) }),
  } as never;
}

const lanes = 8;
const now = Date.UTC(2026, 0, 15, 12);

/** The ledger in a file, or at a `mongodb:` URL. */
async function openLedger(place: string): Promise<LedgerStore> {
  const store = place.startsWith("mongodb:")
    ? createMongoLedger(openMongo({ url: place }))
    : createSqliteLedger(openSqlite(place));
  await store.open();
  return store;
}

/** Works until it is killed, and prints the acknowledged operations. */
async function work(store: LedgerStore, round: string): Promise<void> {
  const lane = async (number: number) => {
    for (let i = 0; ; i++) {
      // Some wallets are shared by several lanes. In others each hold takes all that is free.
      const isOwn = number % 4 === 3;
      const accountId = isOwn ? `acct_own_${round}_${number}` : `acct_${number % 3}`;
      const range = isOwn ? { amount: 1_000_000n, least: 6n } : { amount: 9n };
      const holdId = `hold_${round}_${number}_${i}`;
      const content = { holdKind: "job", keyId: "key_a", ref: "", checkAt: now } as const;
      const operations: Operation[] = [
        { kind: "grant", grantId: holdId, amount: 10n },
        { kind: "takeBack", grantId: holdId, entry: 0, takeBackId: "wrong", amount: 1n },
        { kind: "reserve", holdId, ...range, ...content },
        ...endsOf(holdId, i),
      ];
      let granted = 0;
      // Step by step, so that a kill finds holds in every state.
      for (const planned of operations) {
        const operation = planned.kind === "takeBack" ? { ...planned, entry: granted } : planned;
        const [outcome] = await store.apply({ accountId, unit: "credits" }, [operation], now + i);
        if (outcome?.kind === "granted") granted = outcome.wallet.n;
        const line = { accountId, operation, outcome: say(outcome) };
        const amounts = (_: string, value: unknown) =>
          typeof value === "bigint" ? `${value}` : value;
        process.stdout.write(`${JSON.stringify(line, amounts)}\n`);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
}

/** One of the ways in which a hold ends, including a charge after its hold has lapsed. */
function endsOf(holdId: string, i: number): Operation[] {
  const record = `{"model":"chat","n":${i}}`;
  const draw = { kind: "draw", holdId, amount: 5n, keyId: "key_a", record } as const;
  switch (i % 4) {
    case 0:
      return [{ kind: "release", holdId }];
    case 1:
      return [{ kind: "settle", holdId, amount: 5n }];
    case 2:
      return [draw];
    default: {
      const lapse: Operation = { kind: "release", holdId, isLapse: true };
      return [lapse, { ...draw, fromFree: { keyLimit: undefined } }];
    }
  }
}

/** After a line on standard input, makes holds for many callers at once. Prints how many succeeded. */
async function race(store: LedgerStore, round: string, count: number): Promise<void> {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  const wallet = { accountId: "acct_race", unit: "credits" } as const;
  const content = { amount: 10n, holdKind: "job", keyId: "key_a", ref: "", checkAt: now } as const;
  const outcomes = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      // In waves, so that each process often finds the wallet changed by the other.
      await delay(i % 40);
      const holdId = `hold_${round}_${i}`;
      return say((await store.apply(wallet, [{ kind: "reserve", holdId, ...content }], now))[0]);
    }),
  );
  process.stdout.write(`${JSON.stringify(outcomes)}\n`);
  process.exit(0);
}

const [, script, place, round, racers] = process.argv;
if (script === import.meta.filename && place && round) {
  const store = await openLedger(place);
  if (racers === undefined) await work(store, round);
  else await race(store, round, Number(racers));
}
