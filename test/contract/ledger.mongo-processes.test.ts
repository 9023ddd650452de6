import { join } from "node:path";
import { expect, test } from "vitest";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import { createMongoLedger } from "../../services/billing/ledger/store-mongo.ts";
import { type Child, children } from "../support/children.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Acknowledged, revive } from "./ledger.crash-child.ts";
import { say } from "./ledger.model.ts";

const script = join(import.meta.dirname, "ledger.crash-child.ts");

await describeMongo("a ledger that several processes share", (mongo) => {
  const start = children();

  test("as many reserves succeed as there is money for, from any process", async () => {
    const { store, url } = await newLedger();
    const wallet = { accountId: "acct_race", unit: "credits" } as const;
    await store.apply(wallet, [{ kind: "grant", grantId: "g", amount: 1_000n }], 1);
    const racers = [start(script, url, "one", "90"), start(script, url, "two", "90")];
    for (const { next } of racers) expect(await next()).toBe("ready");
    for (const racer of racers) racer.go();
    const outcomes = await Promise.all(racers.map(async ({ next }) => JSON.parse(await next())));
    const counts = outcomes.map((list) => list.filter((one: string) => one === "open 10").length);
    expect(counts[0] + counts[1]).toBe(100);
    expect(new Set(outcomes.flat())).toEqual(new Set(["open 10", "refused INSUFFICIENT_CREDITS"]));
    // Otherwise it was no race.
    expect(Math.min(...counts)).toBeGreaterThan(0);
    expect(await store.wallet(wallet)).toMatchObject({ free: 0n, held: 1_000n, openHolds: 100 });
    expect(await audit(store)).toBe(101);
  });

  test("killed in the middle, one after the other: what was acknowledged is there, and all adds up", {
    timeout: 240_000,
  }, async () => {
    const { store, url } = await newLedger();
    const acknowledged: Acknowledged[] = [];
    for (let round = 0; round < 3; round++) {
      const pair = [start(script, url, `${round}a`), start(script, url, `${round}b`)];
      const lines = await Promise.all(
        pair.map((one, i) => killedAfter(one, 90 + round * 37 + i * 60)),
      );
      acknowledged.push(...lines.flat());
      expect(await audit(store)).toBeGreaterThanOrEqual(acknowledged.length);
    }
    const entries = await audit(store);
    await Promise.all(acknowledged.map((one) => expectRemembered(store, one)));
    expect(await audit(store)).toBe(entries);
  });

  async function newLedger(): Promise<{ store: LedgerStore; url: string }> {
    const name = mongo.newName();
    const store = createMongoLedger(mongo.connect(name));
    await store.open();
    const url = new URL(mongo.url);
    url.pathname = `/${name}`;
    return { store, url: url.href };
  }
});

async function killedAfter(child: Child, count: number): Promise<Acknowledged[]> {
  const heard: Acknowledged[] = [];
  for await (const line of child.lines) {
    if (!line.endsWith("}")) continue;
    heard.push(JSON.parse(line) as Acknowledged);
    if (heard.length === count) child.process.kill("SIGKILL");
  }
  expect(heard.length, "the child ended by itself").toBeGreaterThanOrEqual(count);
  return heard;
}

/** Another process that repeats the operation gets the same answer. */
async function expectRemembered(
  store: LedgerStore,
  { accountId, operation, outcome }: Acknowledged,
): Promise<void> {
  const [again] = await store.apply({ accountId, unit: "credits" }, [revive(operation)], 0);
  const first =
    operation.kind === "reserve"
      ? new RegExp(`^(open|settled|released) ${outcome.split(" ")[1]}, again$`)
      : `${outcome}, again`;
  expect(say(again)).toMatch(first);
}

/** Counts the entries. Fails at the first difference. */
async function audit(store: LedgerStore): Promise<number> {
  const count = { entries: 0 };
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const found of auditWallet(snapshot, count)) expect(found).toBeUndefined();
  }
  return count.entries;
}
