import { openSqlite } from "#kit/sqlite.ts";
import type { Operation } from "../../services/billing/operations.ts";
import { createSqliteLedger } from "../../services/billing/store-sqlite.ts";
import { say } from "./ledger.model.ts";

/** One acknowledged operation, as a line of JSON. Amounts are decimal text. */
export interface Acknowledged {
  accountId: string;
  operation: Record<string, unknown>;
  outcome: string;
}

/** An operation that travelled as JSON. */
export function revive(operation: Record<string, unknown>): Operation {
  const { amount } = operation;
  return {
    ...operation,
    ...(amount === undefined ? {} : { amount: BigInt(`${amount}`) }),
  } as never;
}

const lanes = 8;
const now = Date.UTC(2026, 0, 15, 12);

/** Works until it is killed, and says on standard output what was acknowledged. */
async function work(file: string, round: string): Promise<void> {
  const store = createSqliteLedger(openSqlite(file));
  await store.open();
  const lane = async (number: number) => {
    for (let i = 0; ; i++) {
      const accountId = `acct_${number % 3}`;
      const holdId = `hold_${round}_${number}_${i}`;
      const content = { holdKind: "job", keyId: "key_a", ref: "", checkAt: now } as const;
      const operations: Operation[] = [
        { kind: "grant", grantId: holdId, amount: 10n },
        { kind: "reserve", holdId, amount: 9n, ...content },
        i % 3 === 0 ? { kind: "release", holdId } : { kind: "settle", holdId, amount: 5n },
      ];
      // Step by step, so that death finds holds in every state.
      for (const operation of operations) {
        const [outcome] = await store.apply({ accountId, unit: "credits" }, [operation], now + i);
        const line = { accountId, operation, outcome: say(outcome) };
        const amounts = (_: string, value: unknown) =>
          typeof value === "bigint" ? `${value}` : value;
        process.stdout.write(`${JSON.stringify(line, amounts)}\n`);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
}

const [, script, file, round] = process.argv;
if (script === import.meta.filename && file && round) await work(file, round);
