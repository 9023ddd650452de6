import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (args: readonly string[]) => runCommand(world, args);

/** The JSON object of a call with `--json`. */
async function json(...args: string[]) {
  return JSON.parse((await genmesh([...args, "--json"])).out);
}

describe("ledger export", () => {
  test("writes what moved an account's balances, within its times", async () => {
    const { accountId } = await json(
      ...["account", "create", "--name", "X", "--credits", "3", "--usd-micros", "7"],
    );
    const { code, out } = await genmesh(["ledger", "export", accountId]);
    expect(code).toBe(0);
    const [head, ...rows] = out.trim().split("\r\n");
    expect(head).toMatch(/^id,createdAt,kind,unit,amount,balanceAfter,/);
    expect(rows).toHaveLength(2);
    expect(rows.map((row) => row.split(",").slice(2, 6).join()).sort()).toEqual([
      "grant,credits,3,3",
      "grant,usd_micros,7,7",
    ]);
    const lines = await genmesh(["ledger", "export", accountId, "--format", "jsonl"]);
    expect(
      lines.out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).amount)
        .sort(),
    ).toEqual([3, 7]);
    // The files begin like those for the account's own key. An operator's have more columns.
    const scopes = ["--scope", "billing", "--scope", "usage:read-all"];
    const { apiKey } = await json("key", "create", accountId, ...scopes);
    for (const [format, written] of [
      ["csv", out],
      ["jsonl", lines.out],
    ]) {
      const url = `${world.mesh.baseUrl}/billing/entries?format=${format}`;
      const answer = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } });
      const own = (await answer.text()).trim().split(/\r?\n/);
      const operators = (written ?? "").trim().split(/\r?\n/);
      const beginOf = (line: string) => line.replace(/}$/, "");
      expect(operators).toHaveLength(own.length);
      for (const [at, line] of own.entries()) {
        expect(operators[at]?.startsWith(`${beginOf(line)},`)).toBe(true);
      }
    }
    const past = ["--to", "2020-01-01T00:00:00Z", "--format", "jsonl"];
    expect((await genmesh(["ledger", "export", accountId, ...past])).out).toBe("");
    const later = ["--from", "2100-01-01T00:00:00Z", "--format", "jsonl"];
    expect((await genmesh(["ledger", "export", accountId, ...later])).out).toBe("");
  });
});
