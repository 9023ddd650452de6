import { afterAll, beforeAll, expect, test } from "vitest";
import { dollars } from "../../services/host/cli/output.ts";
import { until } from "../support/until.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (...args: string[]) => runCommand(world, args);

/** The JSON object of a call with `--json`. */
async function json(...args: string[]) {
  return JSON.parse((await genmesh(...args, "--json")).out);
}

/** The public API, with a key. */
async function ask(key: string, path: string, body?: object) {
  const answer = await fetch(world.mesh.baseUrl + path, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
  });
  return answer.json();
}

/** An account of two dollars with two keys, both with charges. */
async function spender() {
  const funds = ["--usd-micros", "2000000", "--credits", "9"];
  const { accountId, apiKey } = await json("account", "create", "--name", "S", ...funds);
  const second = await json("key", "create", accountId);
  const keys: string[] = [apiKey, second.apiKey];
  const own = await Promise.all(
    keys.map(async (key) => {
      const say = { model: "chat-mini", input: "Hi" };
      const { costUsdMicros: spent } = (await ask(key, "/responses", say)).usage;
      return { keyId: (await ask(key, "/key")).data.id as string, spent: spent as number };
    }),
  );
  // An answer may be sent before it is settled.
  const billing = await until("its settlement", async () => {
    const told = await ask(apiKey, "/billing");
    return told.reservedUsdMicros === 0 ? told : undefined;
  });
  return { accountId, own, billing };
}

test("an audit tells what wallets and keys came to, in the figures of the API", async () => {
  const { accountId, own, billing } = await spender();
  const spent = own.reduce((sum, one) => sum + one.spent, 0);
  expect(billing).toMatchObject({
    availableUsdMicros: 2_000_000 - spent,
    monthSpendUsdMicros: spent,
  });
  const counted = { requests: 2, spent, rollupRequests: 2, rollupSpent: spent };
  const none = { requests: 0, spent: 0, rollupRequests: 0, rollupSpent: 0 };
  const usd = {
    ...{ unit: "usd_micros", granted: 2_000_000, available: billing.availableUsdMicros },
    ...{ reserved: 0, spendable: billing.spendableUsdMicros, monthSpent: spent, ...counted },
  };
  const credits = {
    ...{ unit: "credits", granted: 9, available: 9, reserved: 0, spendable: 9, monthSpent: 0 },
    ...none,
  };
  const agreed = { ok: true, wallets: 2, differences: [], totals: [usd, credits] };
  expect(await json("ledger", "audit", accountId)).toMatchObject(agreed);
  const byKey = await json("ledger", "audit", accountId, "--by", "key");
  expect(byKey).toMatchObject(agreed);
  const ofKeys = own.map((one) => ({
    ...{ accountId, keyId: one.keyId, unit: "usd_micros", requests: 1, spent: one.spent },
    ...{ rollupRequests: 1, rollupSpent: one.spent },
  }));
  expect(byKey.keys).toHaveLength(2);
  expect(byKey.keys).toEqual(expect.arrayContaining(ofKeys));

  const { out, code } = await genmesh("ledger", "audit", accountId, "--by", "key");
  expect(code).toBe(0);
  const lines = out.split("\n").map((line) => line.trim().split(/ {2,}/));
  expect(lines[0]).toEqual([
    ...["account", "key", "wallet", "requests", "spent", "in usage", "spent in usage"],
  ]);
  for (const { keyId, spent: each } of own) {
    const cost = dollars(BigInt(each));
    expect(lines).toContainEqual([accountId, keyId, "US dollars", "1", cost, "1", cost]);
  }
  expect(lines).toContainEqual([
    ...["all", "US dollars", dollars(BigInt(2_000_000 - spent)), "$0.00"],
    ...[dollars(BigInt(spent)), "2", dollars(BigInt(spent)), "2", dollars(BigInt(spent))],
  ]);
  expect(out).toMatch(/\n2 wallets, \d+ entries: the books agree\n$/);
});

test("of all accounts each by itself, and their sum", async () => {
  const made = await Promise.all([spender(), spender()]);
  const { totals, accounts } = await json("ledger", "audit", "--by", "account");
  for (const { accountId, billing } of made) {
    expect(accounts).toContainEqual(
      expect.objectContaining({
        ...{ accountId, unit: "usd_micros", available: billing.availableUsdMicros },
        ...{ monthSpent: billing.monthSpendUsdMicros, rollupSpent: billing.monthSpendUsdMicros },
      }),
    );
  }
  for (const total of totals) {
    const own = accounts.filter((one: { unit: string }) => one.unit === total.unit);
    for (const name of Object.keys(total).filter((one) => one !== "unit")) {
      const sum = own.reduce(
        (all: number, one: Record<string, number>) => all + (one[name] ?? 0),
        0,
      );
      expect(sum, name).toBe(total[name]);
    }
  }
  expect((await genmesh("ledger", "audit", "--by", "moon")).code).toBe(2);
});
