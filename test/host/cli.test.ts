import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProgram } from "../../services/host/cli/program.ts";
import { envToOperatorConfig } from "../../services/host/config.ts";
import { freePort } from "../support/free-port.ts";
import type { Variables } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (args: readonly string[], env: Variables = {}) => runCommand(world, args, env);

/** The JSON object of a call with `--json`, which must succeed. */
async function json(...args: string[]) {
  const { code, out, err } = await genmesh([...args, "--json"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out.trimEnd().split("\n")).toHaveLength(1);
  return JSON.parse(out);
}

async function status(path: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return (await fetch(world.mesh.baseUrl + path, { headers })).status;
}

describe("account", () => {
  test("create prints ids and the key, which works", async () => {
    const funds = ["--usd-micros", "5000000", "--credits", "12"];
    const made = await json("account", "create", "--name", "Team A", ...funds);
    expect(made).toEqual({
      accountId: expect.stringMatching(/^acct_/),
      keyId: expect.stringMatching(/^key_/),
      apiKey: expect.stringMatching(/^gm_/),
      replayed: false,
    });
    expect(await status("/models", made.apiKey)).toBe(200);
    expect(await json("account", "balance", made.accountId)).toEqual({
      accountId: made.accountId,
      usdMicros: { available: 5_000_000, reserved: 0, spendable: 5_000_000, monthSpent: 0 },
      credits: { available: 12, reserved: 0, spendable: 12, monthSpent: 0 },
    });
  });

  test("for people it prints a line for each fact", async () => {
    const { out } = await genmesh(["account", "create", "--name", "Team B"]);
    expect(out).toMatch(/^accountId {2}acct_\w+\nkeyId {6}key_\w+\napiKey {5}gm_\w+\n$/);
  });

  test("the same operation id makes one account and adds its funds once", async () => {
    const call = ["account", "create", "--name", "C", "--credits", "5", "--operation-id", "c"];
    const first = await json(...call);
    const second = await json(...call);
    expect(second).toEqual({ ...first, apiKey: "", replayed: true });
    expect((await json("account", "balance", first.accountId)).credits.available).toBe(5);
    expect((await genmesh(call)).out).toContain("(shown when the account was made;");
    const other = await genmesh(["account", "create", "--name", "D", "--operation-id", "c"]);
    expect(other.code).toBe(1);
  });

  test("a repeat adds the funds that were not added the first time", async () => {
    const call = ["account", "create", "--name", "E", "--operation-id", "e"];
    const { accountId } = await json(...call);
    await json(...call, "--credits", "9");
    expect((await json("account", "balance", accountId)).credits.available).toBe(9);
  });

  test("--api-key chooses the key", async () => {
    const key = "chosen-by-the-operator_1";
    const made = await json("account", "create", "--name", "K", "--api-key", key);
    expect(made.apiKey).toBe(key);
    expect(await status("/models", key)).toBe(200);
  });

  test("top-up adds once for an operation id, and shows the balance", async () => {
    const { accountId } = await json("account", "create", "--name", "T");
    const call = ["account", "top-up", accountId, "--usd-micros", "1500000"];
    const once = await json(...call, "--operation-id", "invoice-17");
    expect(once).toMatchObject({ usdMicros: { available: 1_500_000 }, replayed: false });
    const again = await genmesh([...call, "--operation-id", "invoice-17"]);
    expect(again.out).toBe(
      [
        "This operation was made before; nothing was added.",
        "wallet      available  reserved  spendable  this month",
        "US dollars      $1.50     $0.00      $1.50       $0.00",
        "credits             0         0          0           0",
        "",
      ].join("\n"),
    );
    const more = await json(...call);
    expect(more).toMatchObject({ usdMicros: { available: 3_000_000 }, replayed: false });
    const other = ["account", "top-up", accountId, "--usd-micros", "7"];
    expect((await genmesh([...other, "--operation-id", "invoice-17"])).code).toBe(1);
  });

  test("list shows all, over every page, and no name can move the cursor", async () => {
    await json("account", "create", "--name", "bell\u0007 and\u001b[2J more");
    const { out } = await genmesh(["account", "list"]);
    expect(out).toMatch(/^account +name +made +state\n/);
    expect(out).toMatch(/acct_\w+ +demo +\d{4}-\d\d-\d\dT[\d:.]+Z +active\n/);
    expect(out).toContain("bell  and [2J more");
    const { accounts } = await json("account", "list");
    expect(accounts[0]).toEqual({
      accountId: expect.stringMatching(/^acct_/),
      name: "demo",
      createdAt: expect.any(String),
      ...{ requestsPerMinute: 6_000, rateIsSet: false },
    });
  });

  test.each([
    [["account", "balance", "acct_nobody"], /no such account/],
    [["account", "top-up", "acct_nobody", "--credits", "1"], /no such account/],
    [["account", "top-up", "acct_nobody"], /nothing to add: give --usd or --credits/],
    [["account", "create", "--name", " "], /--name must be 1 to 200 characters/],
    [["account", "create", "--name", "x", "--api-key", "short"], /--api-key must be 20 to 200/],
    [["key", "create", "acct_nobody"], /no such account/],
    [["key", "list", "acct_nobody"], /no such account/],
    [
      ["key", "create", "acct_nobody", "--model", "nope"],
      /no model nope; the catalog has: .*chat-mini/,
    ],
    [["ledger", "audit", "acct_nobody"], /no such account/],
    [["job", "list", "acct_nobody"], /no such account/],
    [["key", "rotate", "key_nobody"], /no such key/],
    [["key", "revoke", "key_nobody"], /no such key/],
  ])("%j: exit 1 and a line that helps", async (args, message) => {
    const { code, out, err } = await genmesh(args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(message);
    expect(err).toMatch(/^genmesh: .+\n$/);
  });
});

describe("key", () => {
  let accountId: string;
  beforeAll(async () => {
    ({ accountId } = await json("account", "create", "--name", "of keys"));
  });

  test("create takes every limit, list shows them, and no secret", async () => {
    const limits = ["--scope", "text", "--scope", "models", "--model", "chat-mini"];
    const more = ["--expires-at", "2099-01-01", "--monthly-usd-micros", "250000"];
    const call = ["key", "create", accountId, ...limits, ...more, "--requests-per-minute", "60"];
    const made = await json(...call);
    expect(await status("/models", made.apiKey)).toBe(200);
    expect(await status("/billing", made.apiKey)).toBe(403);
    const { keys } = await json("key", "list", accountId);
    expect(keys.at(-1)).toEqual({
      keyId: made.keyId,
      accountId,
      secretHint: made.apiKey.slice(-4),
      scopes: ["text", "models"],
      allowedModels: ["chat-mini"],
      monthlyUsdMicros: 250_000,
      requestsPerMinute: 60,
      createdAt: expect.any(String),
      expiresAt: "2099-01-01T00:00:00.000Z",
    });
    const { out } = await genmesh(["key", "list", accountId]);
    expect(out).not.toContain(made.apiKey);
    expect(out).toMatch(/text,models +chat-mini +\$0\.25 +60 +2099-01-01T00:00:00\.000Z +active/);
  });

  test("create names a key, and gives the scope that manages keys", async () => {
    const call = ["key", "create", accountId, "--name", "owner", "--scope", "keys"];
    const owner = await json(...call, "--scope", "models");
    expect(await status("/keys", owner.apiKey)).toBe(200);
    expect((await genmesh(["key", "list", accountId])).out).toMatch(/owner .*keys,models .*active/);
    const plain = await json("key", "create", accountId);
    expect(await status("/keys", plain.apiKey)).toBe(403);
  });

  test("scopes that reach beyond the key are stored and listed", async () => {
    const scopes = ["keys", "usage:read-all", "jobs:read-all", "webhooks"];
    await json("key", "create", accountId, ...scopes.flatMap((one) => ["--scope", one]));
    const { keys } = await json("key", "list", accountId);
    expect(keys.at(-1).scopes).toEqual(scopes);
  });

  test("rotate keeps the id, and the former secret for the grace time", async () => {
    const made = await json("key", "create", accountId);
    const rotated = await json("key", "rotate", made.keyId);
    expect(rotated).toMatchObject({ keyId: made.keyId, formerValidUntil: expect.any(String) });
    const untilMs = Date.parse(rotated.formerValidUntil) - Date.now();
    expect(untilMs / 3_600_000).toBeCloseTo(24, 1);
    for (const one of [made, rotated]) expect(await status("/models", one.apiKey)).toBe(200);
    const last = await json("key", "rotate", made.keyId, "--grace", "0");
    await expect.poll(() => status("/models", rotated.apiKey), { timeout: 5_000 }).toBe(401);
    expect(await status("/models", last.apiKey)).toBe(200);
  });

  test("revoke ends a key", async () => {
    const made = await json("key", "create", accountId);
    expect(await status("/models", made.apiKey)).toBe(200);
    const { out, code } = await genmesh(["key", "revoke", made.keyId]);
    expect({ out, code }).toEqual({ out: `${made.keyId} is revoked.\n`, code: 0 });
    await expect.poll(() => status("/models", made.apiKey), { timeout: 5_000 }).toBe(401);
    expect((await genmesh(["key", "list", accountId])).out).toContain("revoked");
    expect((await genmesh(["key", "rotate", made.keyId])).code).toBe(1);
  });

  test("an expiry that has passed is refused", async () => {
    const past = ["key", "create", accountId, "--expires-at", "2001-01-01T00:00:00Z"];
    expect((await genmesh(past)).err).toBe("genmesh: --expires-at must lie in the future\n");
  });
});

describe("ledger audit", () => {
  test("agrees over all wallets, and over those of one account", async () => {
    const { accountId } = await json("account", "create", "--name", "L", "--credits", "3");
    expect(await json("ledger", "audit", accountId)).toEqual({
      ok: true,
      wallets: 1,
      entries: 1,
      differences: [],
      totals: [expect.objectContaining({ unit: "credits", granted: 3, available: 3 })],
    });
    const { code, out } = await genmesh(["ledger", "audit"]);
    expect(code).toBe(0);
    expect(out).toMatch(/\n\d+ wallets, \d+ entries: the books agree\n$/);
  });
});

describe("a server that does not help", () => {
  test("away", async () => {
    const server = `127.0.0.1:${await freePort()}`;
    const { code, err } = await genmesh(["account", "list", "--server", server]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /\ngenmesh: the service auth at \S+ is away: .*is it running.*ECONNREFUSED/,
    );
  });

  test("none that speaks gRPC", async () => {
    const server = new URL(world.mesh.baseUrl).host;
    const { code, err } = await genmesh(["account", "list", "--server", server]);
    expect(code).toBe(1);
    expect(err).toMatch(/^genmesh: the server does not answer as a genmesh does .+--server.+\n$/);
  });

  test("no address", async () => {
    const { code, err } = await genmesh(["account", "list", "--server", "not an address"]);
    expect(code).toBe(1);
    expect(err).toContain("--server must be HOST:PORT");
  });

  test("another's token", async () => {
    const env = { GENMESH_ADMIN_TOKEN: "some-other-admin-token" };
    const { code, err } = await genmesh(["account", "list"], env);
    expect(code).toBe(1);
    expect(err).toContain("does not accept this admin token: set GENMESH_ADMIN_TOKEN");
    expect(err).not.toContain(env.GENMESH_ADMIN_TOKEN);
  });

  test("no token at all", async () => {
    const { code, err } = await genmesh(["account", "list"], { GENMESH_DATA_DIR: "/nowhere" });
    expect(code).toBe(1);
    expect(err).toMatch(/^genmesh: no admin token: .+ \(looked in \/nowhere\)\n$/);
  });

  test("with --json a fault is an object too, on standard error", async () => {
    const { code, out, err } = await genmesh(["account", "balance", "acct_x", "--json"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(JSON.parse(err)).toEqual({
      error: { reason: "ACCOUNT_NOT_FOUND", message: expect.stringContaining("no such account") },
    });
  });
});

describe("words", () => {
  test.each([
    [["account", "create"], /required option '--name <name>'/],
    [
      ["account", "create", "--name", "x", "--usd-micros", "1.5"],
      /whole number of up to 15 digits/,
    ],
    [["account", "create", "--name", "x", "--credits", "-1"], /whole number of up to 15 digits/],
    [["account", "create", "--name", "x", "--operation-id", "a b"], /1 to 100 characters/],
    [["account", "top-up"], /missing required argument 'account'/],
    [["key", "create", "a", "--scope", "everything"], /one of: text, images, videos/],
    [["key", "create", "a", "--expires-at", "soon"], /a time like 2027-01-31T00:00:00Z/],
    [["key", "create", "a", "--expires-at", "2099-02-30"], /a time like 2027-01-31T00:00:00Z/],
    [["ledger", "export", "a", "--from", "1"], /a time like 2027-01-31T00:00:00Z/],
    [["ledger", "export", "a", "--to", "2026-12-01T00:00"], /a time like 2027-01-31T00:00:00Z/],
    [["key", "create", "a", "--requests-per-minute", "0"], /from 1 to 1000000/],
    [["key", "rotate", "k", "--grace", "2592001"], /from 0 to 2592000/],
    [["acount", "list"], /unknown command 'acount'.*Did you mean account/s],
    [["account", "list", "--jsn"], /unknown option '--jsn'.*Did you mean --json/s],
    [["account", "list", "more"], /too many arguments/],
  ])("%j: exit 2, what is wrong, and where help is", async (args, message) => {
    const { code, out, err } = await genmesh(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(message);
    expect(err).toContain("--help shows how it is called, with examples");
  });

  test.each([[["acount"]], [["account", "create"]], [["key", "create", "a", "--scope", "x"]]])(
    "%j with --json: exit 2, and an object on standard error",
    async (args) => {
      const { code, out, err } = await genmesh([...args, "--json"]);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(JSON.parse(err)).toEqual({
        error: { reason: "BAD_USAGE", message: expect.stringMatching(/./) },
      });
    },
  );

  test("no words at all: the help, and exit 2", async () => {
    const { code, err } = await genmesh([]);
    expect(code).toBe(2);
    expect(err).toContain("Usage: genmesh");
  });

  test("--help works without a server or a token at every level, with examples that parse", async () => {
    const nowhere = { GENMESH_DATA_DIR: "/nowhere" };
    const program = createProgram({ config: envToOperatorConfig({}), out() {}, err() {} });
    const levels = pathsOf(program.command);
    expect(levels.length).toBeGreaterThan(12);
    for (const level of levels) {
      const { code, out } = await genmesh([...level, "--help"], nowhere);
      expect({ level, code }).toEqual({ level, code: 0 });
      const examples = [...out.matchAll(/^ {2}\$ npx genmesh (.+)$/gm)].map((one) => one[1] ?? "");
      expect({ level, examples: examples.length > 0 }).toEqual({ level, examples: true });
      for (const example of examples) {
        // The shell takes what stands behind a ">".
        const [own = ""] = example.split(" > ");
        const words = [...own.matchAll(/"([^"]*)"|(\S+)/g)].map((one) => one[1] ?? one[2] ?? "");
        // Exit code 2 means invalid arguments. Whether there is a server is another question.
        const parsed = await genmesh(words, nowhere);
        expect({ example, wordsAreOff: parsed.code === 2 }).toEqual({
          example,
          wordsAreOff: false,
        });
        expect(example.startsWith(level.join(" "))).toBe(true);
      }
      expect(out).toContain("--json");
    }
  });
});

/** Every command and group with its words. */
function pathsOf(command: Command, path: string[] = []): string[][] {
  return [path, ...command.commands.flatMap((one) => pathsOf(one, [...path, one.name()]))];
}
