import { afterAll, beforeAll, expect, test } from "vitest";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
let accountId: string;
beforeAll(async () => {
  world = await startHostWorld();
  ({ accountId } = await json("account", "create", "--name", "of keys"));
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (args: readonly string[]) => runCommand(world, args, {});

/** The JSON object of a call with `--json`, which must succeed. */
async function json(...args: string[]) {
  const { code, out, err } = await genmesh([...args, "--json"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out);
}

test("a key's limit may be a day's, a week's or for ever, and be changed, with whom it tells", async () => {
  const call = ["key", "create", accountId, "--limit-usd-micros", "250000"];
  const made = await json(...call, "--limit-reset", "daily");
  const listed = async () => (await json("key", "list", accountId)).keys.at(-1);
  expect(await listed()).toMatchObject({ limitUsdMicros: 250_000, limitReset: "daily" });
  expect((await genmesh(["key", "list", accountId])).out).toMatch(/ \$0\.25 daily /);
  const change = (...options: string[]) => json("key", "update", made.keyId, ...options);
  await change("--limit-reset", "never", "--name", "renamed", "--disable");
  expect(await listed()).toMatchObject({ limitReset: "never", name: "renamed", disabled: true });
  const webhook = ["--webhook-url", "https://example.com/hooks"];
  const { key } = await change(...webhook, "--low-balance-usd-micros", "7", "--enable");
  expect(key).toMatchObject({ webhookUrl: "https://example.com/hooks" });
  const shown = await fetch(`${world.mesh.baseUrl}/key`, {
    headers: { authorization: `Bearer ${made.apiKey}` },
  });
  expect((await shown.json()).data).toMatchObject({ limit: 0.25, limit_reset: null });
  await change("--limit-usd-micros", "none", "--webhook-url", "none");
  expect(await listed()).not.toHaveProperty("limitUsdMicros");
  expect(await listed()).not.toHaveProperty("webhookUrl");
  for (const wrong of [[], ["--limit-reset", "yearly"], ["--enable", "--disable"]]) {
    expect((await genmesh(["key", "update", made.keyId, ...wrong])).code).not.toBe(0);
  }
});

test("an account's alerts are shown and changed", async () => {
  const none = { accountId, lowBalanceUsdMicros: null, webhookUrl: null };
  expect(await json("account", "alerts", accountId)).toEqual(none);
  const set = ["--low-balance-usd-micros", "5000000", "--webhook-url", "https://example.com/low"];
  const told = {
    accountId,
    lowBalanceUsdMicros: 5_000_000,
    webhookUrl: "https://example.com/low",
  };
  expect(await json("account", "alerts", accountId, ...set)).toEqual(told);
  expect((await genmesh(["account", "alerts", accountId])).out).toMatch(/\$5\.00/);
  await json("account", "alerts", accountId, "--low-balance-usd-micros", "none");
  expect(await json("account", "alerts", accountId)).toEqual({
    ...told,
    lowBalanceUsdMicros: null,
  });
});
