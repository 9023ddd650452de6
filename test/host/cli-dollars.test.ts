import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPeers } from "#common/agreements/peers.ts";
import { tokenInterceptor } from "#kit/rpc/access.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { amount, usd } from "../../services/host/cli/arguments.ts";
import { until } from "../support/until.ts";
import { type HostWorld, meshToken, runCommand, startHostWorld } from "./world.ts";

/** The time of a hold's check with its owner, which is after this test. */
const later = Date.UTC(2099, 0);

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (...args: string[]) => runCommand(world, args);

/** The JSON object of a call with `--json`, which must succeed. */
async function json(...args: string[]) {
  const { code, out, err } = await genmesh(...args, "--json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out);
}

const account = (...funds: string[]) => json("account", "create", "--name", "D", ...funds);

/** The cells in a table's lines. */
const cellsOf = (out: string) => out.split("\n").map((line) => line.trim().split(/ {2,}/));

/** The charge of one request of the account in micros, once it is settled. */
async function spend({ accountId, apiKey }: { accountId: string; apiKey: string }) {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "chat-mini", input: "Hi" });
  const answer = await fetch(`${world.mesh.baseUrl}/responses`, { method: "POST", headers, body });
  await answer.arrayBuffer();
  const { usdMicros } = await until("its settlement", async () => {
    const balance = await json("account", "balance", accountId);
    return balance.usdMicros.monthSpent > 0 ? balance : undefined;
  });
  return usdMicros.monthSpent as number;
}

test.each([
  ["5", 5_000_000n],
  ["5.00", 5_000_000n],
  ["0.1", 100_000n],
  ["0.000001", 1n],
  ["0", 0n],
  ["999999999.999999", 999_999_999_999_999n],
])("--usd %s is exact", (words, micros) => {
  expect(usd(words)).toBe(micros);
  expect(amount(`${micros}`)).toBe(micros);
});

describe("an amount of dollars", () => {
  test.each([
    "-1",
    "1e3",
    "1,5",
    "1,000",
    "$5",
    ".5",
    "5.",
    "0.0000001",
    "1234567890",
    "",
    " 5",
    "5 ",
  ])("%j is refused: exit 2, and what it must be", async (words) => {
    const { code, err } = await genmesh("account", "top-up", "acct_x", `--usd=${words}`);
    expect(code).toBe(2);
    expect(err).toMatch(/dollars such as 5 or 0\.25: .*at most 6 decimals/);
  });

  test.each([
    ["account create --name x", "--usd", "--usd-micros"],
    ["account top-up a", "--usd", "--usd-micros"],
    ["account alerts a", "--low-balance-usd", "--low-balance-usd-micros"],
    ["account refund a --entry 1", "--usd", "--amount"],
    ["key create a", "--limit-usd", "--limit-usd-micros"],
    ["key create a", "--monthly-usd", "--monthly-usd-micros"],
    ["key update k", "--limit-usd", "--limit-usd-micros"],
    ["key update k", "--low-balance-usd", "--low-balance-usd-micros"],
    ["hold settle h", "--usd", "--amount"],
  ])("genmesh %s: %s and %s exclude each other", async (call, dollars, micros) => {
    const { code, err } = await genmesh(...call.split(" "), dollars, "1", micros, "1000000");
    expect(code).toBe(2);
    expect(err).toMatch(/cannot be used with/);
  });

  test("opens an account, tops it up, and bounds keys", async () => {
    const { accountId } = await account("--usd", "5.00");
    const topped = await json("account", "top-up", accountId, "--usd", "0.000001");
    expect(topped.usdMicros.available).toBe(5_000_001);
    expect(await json("account", "alerts", accountId, "--low-balance-usd", "2.5")).toMatchObject({
      lowBalanceUsdMicros: 2_500_000,
    });
    expect(await json("account", "alerts", accountId, "--low-balance-usd", "none")).toMatchObject({
      lowBalanceUsdMicros: null,
    });
    await json("key", "create", accountId, "--monthly-usd", "1");
    const day = ["--limit-usd", "0.25", "--limit-reset", "daily"];
    const { keyId } = await json("key", "create", accountId, ...day);
    const { keys } = await json("key", "list", accountId);
    expect(keys.slice(-2)).toMatchObject([
      { monthlyUsdMicros: 1_000_000 },
      { limitUsdMicros: 250_000, limitReset: "daily" },
    ]);
    const change = (...words: string[]) => json("key", "update", keyId, ...words);
    expect((await change("--limit-usd", "3")).key).toMatchObject({ limitUsdMicros: 3_000_000 });
    expect((await change("--limit-usd", "none")).key).not.toHaveProperty("limitUsdMicros");
    await change("--webhook-url", "https://example.com/hooks", "--low-balance-usd", "1");
    const both = ["--limit-usd", "1", "--monthly-usd", "2"];
    expect((await genmesh("key", "create", accountId, ...both)).err).toMatch(/name one of them/);
  });

  test("is what a refund gives back of the dollar wallet alone", async () => {
    const made = await account("--usd", "1");
    const spent = await spend(made);
    const refund = (...words: string[]) => ["account", "refund", made.accountId, ...words];
    const credits = await genmesh(...refund("--entry", "3", "--unit", "credits", "--usd", "1"));
    expect(credits.err).toMatch(/--usd is for the dollar wallet/);
    const part = await genmesh(...refund("--entry", "3", "--usd", "0.000001"));
    expect(part.out).toMatch(/^\$0\.000001 of entry 3 were given back\.\n/);
    const { usdMicros } = await json("account", "balance", made.accountId);
    expect(usdMicros.monthSpent).toBe(spent - 1);
  });
});

describe("tables", () => {
  test("show dollars in the ledger's audit", async () => {
    const made = await account("--usd", "2", "--credits", "9");
    const spent = await spend(made);
    const cost = `$0.${`${spent}`.padStart(6, "0").replace(/0{0,4}$/, "")}`;
    const { out } = await genmesh("ledger", "audit", made.accountId, "--by", "key");
    const lines = cellsOf(out);
    expect(lines[0]?.slice(0, 3)).toEqual(["account", "key", "wallet"]);
    expect(lines).toContainEqual([
      ...[made.accountId, made.keyId, "US dollars", "1", cost, "1", cost],
    ]);
    expect(lines).toContainEqual(["all", "credits", "9", "0", "0", "0", "0", "0", "0"]);
    expect(out).not.toContain("micros");
  });

  test("show dollars in the audit log, of the command and the console alike", async () => {
    const { accountId } = await account("--usd", "5", "--credits", "12");
    await genmesh("account", "refund", accountId, "--entry", "1", "--usd", "0.5");
    const { out } = await genmesh("audit", "list", accountId);
    expect(out).toContain('"usd":"$5.00","credits":"12"');
    expect(out).toContain('"usd":"$0.50"');
    expect(out).not.toContain("micros");
    const { actions } = await json("audit", "list", accountId);
    expect(actions.at(-1).details).toContain('"usdMicros":"5000000"');
  });

  test("show dollars of open holds, which are settled by dollars", async () => {
    const { accountId, keyId } = await account("--usd", "1", "--credits", "9");
    const transport = createGrpcTransport({
      baseUrl: `http://${world.mesh.grpcAddress}`,
      interceptors: [tokenInterceptor(meshToken)],
    });
    const { billing } = createPeers(() => transport);
    const holds = [
      [Unit.USD_MICROS, "req_dollars", 1_200n],
      [Unit.CREDITS, "req_credits", 5n],
    ] as const;
    for (const [unit, holdId, amount] of holds) {
      const hold = { accountId, keyId, kind: HoldKind.TEXT, checkTime: timestampFromMs(later) };
      await billing.reserve({ ...hold, unit, holdId, amount, ref: holdId });
    }
    const lines = cellsOf((await genmesh("hold", "list", accountId)).out);
    expect(lines.find(([id]) => id === "req_dollars")?.[4]).toBe("$0.0012");
    expect(lines.find(([id]) => id === "req_credits")?.[4]).toBe("5 credits");
    expect((await json("hold", "list", accountId)).holds).toContainEqual({
      ...{ holdId: "req_dollars", accountId, owner: "text", ref: "req_dollars" },
      ...{ amount: 1_200, unit: "usd_micros", openedAt: expect.stringMatching(/^20.*Z$/) },
    });
    const wrong = await genmesh("hold", "settle", "req_credits", "--usd", "1");
    expect(wrong).toMatchObject({ code: 1, err: expect.stringMatching(/--amount for credits/) });
    const none = await genmesh("hold", "settle", "req_none");
    expect(none).toMatchObject({ code: 1, err: expect.stringMatching(/give --usd or --amount/) });
    const settled = await genmesh("hold", "settle", "req_dollars", "--usd", "0.001");
    expect(settled.out).toBe("req_dollars is settled; charged: $0.001\n");
  });
});
