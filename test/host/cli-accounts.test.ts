import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { tempFolder, type Variables } from "./process.ts";
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

test("account suspend and resume", async () => {
  const made = await json("account", "create", "--name", "of one who did not pay");
  const { accountId, apiKey } = made;
  expect((await genmesh(["account", "suspend", accountId])).out).toBe(
    `${accountId} is suspended.\n`,
  );
  expect((await genmesh(["account", "list"])).out).toMatch(
    new RegExp(`${accountId} .* suspended\n`),
  );
  const { suspendedAt } = await json("account", "suspend", accountId);
  expect(await json("account", "suspend", accountId)).toEqual({
    ...{ accountId, state: "suspended", suspendedAt },
  });
  // Reads are still allowed.
  expect(await status("/models", apiKey)).toBe(200);
  expect(await json("account", "resume", accountId)).toEqual({ accountId, state: "active" });
  const { code, err } = await genmesh(["account", "suspend", "acct_none"]);
  expect({ code, err: err.startsWith("genmesh: ") }).toEqual({ code: 1, err: true });
});

test("account set changes what is named, and says what is wrong", async () => {
  const { accountId } = await json("account", "create", "--name", "Set");
  const set = ["account", "set", accountId];
  expect((await json(...set, "--rate", "60")).account).toMatchObject({
    ...{ accountId, name: "Set", requestsPerMinute: 60, rateIsSet: true },
  });
  expect((await genmesh([...set, "--rate", "61"])).out).toBe(`${accountId} is changed.\n`);
  expect((await json(...set, "--rate", "default")).account).toMatchObject({
    ...{ requestsPerMinute: 6_000, rateIsSet: false },
  });
  const texts = ["--name", "Renamed", "--note", "pays\nby invoice"];
  expect((await json(...set, ...texts)).account).toMatchObject({
    ...{ name: "Renamed", notes: "pays\nby invoice" },
  });
  expect((await genmesh(["account", "show", accountId])).out).toMatch(
    /name +Renamed\nstate +active\n.*\nrate +6000 requests a minute \(default\)\nmonthly grant +none\nnotes +pays by invoice\n/,
  );
  expect((await json(...set, "--note", "none")).account.notes).toBe("");
  const funds = ["--monthly-grant", "25.5", "--monthly-grant-credits", "7"];
  expect((await json(...set, ...funds)).account.monthlyGrant).toEqual({
    ...{ usdMicros: 25_500_000, credits: 7, nextAt: expect.stringMatching(/-01T00:00:00.000Z$/) },
  });
  expect((await genmesh(["account", "show", accountId])).out).toMatch(
    /monthly grant +\$25\.50 and 7 credits, next at \S+-01T00:00:00.000Z\n/,
  );
  const none = ["--monthly-grant-micros", "none", "--monthly-grant-credits", "none"];
  expect((await json(...set, ...none)).account.monthlyGrant).toBeNull();
  for (const [words, code, told] of [
    [[], 1, /name what to change/],
    [["--rate", "0"], 2, /whole number from 1 to 1000000/],
  ] as const) {
    const said = await genmesh([...set, ...words]);
    expect(said).toMatchObject({ code, err: expect.stringMatching(told) });
  }
  expect((await genmesh(["account", "set", "acct_none", "--rate", "9"])).err).toMatch(
    /there is no such account/,
  );
  const { actions } = await json("audit", "list", accountId);
  expect(actions[0]).toMatchObject({ action: "account.update", outcome: "done" });
  expect(
    actions.slice(2, 5).map(({ details }: { details: string }) => JSON.parse(details)),
  ).toEqual([
    { changed: "notes", notes: null },
    { changed: "name, notes" },
    { changed: "requestsPerMinute", requestsPerMinute: null },
  ]);
});

test("--secret-file takes a secret, and prints it nowhere", async () => {
  await using folder = await tempFolder();
  const [first, second, third] = ["a", "b", "c"].map((name) => join(folder.path, name));
  const made = await json("account", "create", "--name", "S", "--secret-file", `${first}`);
  expect(made).toEqual({
    ...{ accountId: expect.any(String), keyId: expect.any(String), replayed: false },
    secretFile: first,
  });
  const key = await genmesh(["key", "create", made.accountId, "--secret-file", `${second}`]);
  expect(key.out).toMatch(/^keyId +key_\w+\nsecret in +\/.+\/b\n$/);
  const rotated = ["key", "rotate", made.keyId, "--grace", "0", "--secret-file", `${third}`];
  expect((await json(...rotated)).secretFile).toBe(third);
  const [former, ...valid] = await Promise.all(
    [first, second, third].map(async (file) => (await readFile(`${file}`, "utf8")).trimEnd()),
  );
  expect(await status("/models", `${former}`)).toBe(401);
  for (const secret of valid) expect(await status("/models", secret)).toBe(200);
  expect((await stat(`${first}`)).mode & 0o777).toBe(0o600);
});

test("a secret's file is there before the key is made, and goes where none is made", async () => {
  await using folder = await tempFolder();
  const { accountId } = await json("account", "create", "--name", "T");
  const create = (file: string, account = accountId) =>
    genmesh(["key", "create", account, "--secret-file", join(folder.path, file)]);
  await writeFile(join(folder.path, "taken"), "another's");
  expect((await create("taken")).err).toContain("EEXIST");
  expect((await create("none/x")).err).toContain("ENOENT");
  expect((await json("key", "list", accountId)).keys).toHaveLength(1);
  expect((await create("x", "acct_none")).code).toBe(1);
  await expect(stat(join(folder.path, "x"))).rejects.toThrow("ENOENT");
  expect(await readFile(join(folder.path, "taken"), "utf8")).toBe("another's");
});

test("account refund gives a charge back once, and says what the wallet has then", async () => {
  const funds = ["--usd-micros", "1000000"];
  const { accountId, apiKey } = await json("account", "create", "--name", "R", ...funds);
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "chat-mini", input: "Hi" });
  const answer = await fetch(`${world.mesh.baseUrl}/responses`, { method: "POST", headers, body });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  // An answer may be sent before it is settled.
  const before = await until("its settlement", async () => {
    const balance = await json("account", "balance", accountId);
    return balance.usdMicros.reserved === 0 ? balance : undefined;
  });
  const charged = before.usdMicros.monthSpent;
  expect(charged).toBeGreaterThan(0);
  const call = ["account", "refund", accountId, "--entry", "3", "--operation-id", "ticket-1"];
  const refund = { accountId, unit: "usd_micros", entry: 3, refundEntry: 4, amount: charged };
  expect(await json(...call)).toEqual({ ...refund, replayed: false });
  expect(await json(...call)).toEqual({ ...refund, replayed: true });
  const after = await json("account", "balance", accountId);
  expect(after.usdMicros).toMatchObject({ available: 1_000_000, monthSpent: 0 });
  for (const [entry, told] of [
    ["3", /entry=4/],
    ["99", /no such entry/],
    ["1", /no such entry/],
  ] as const) {
    const { code, err } = await genmesh(["account", "refund", accountId, "--entry", entry]);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(told) });
  }
  const { out } = await genmesh(["ledger", "export", accountId, "--format", "jsonl"]);
  const [given, spent] = out.split("\n").map((line) => (line === "" ? {} : JSON.parse(line)));
  expect(given).toMatchObject({ id: "usd_micros-4", kind: "refund", refundOf: spent.id });
  expect(spent).toMatchObject({ id: "usd_micros-3", kind: "charge", refundOf: null });
  expect(await json("ledger", "audit", accountId)).toMatchObject({ ok: true });
});

test("account take-back takes funds that were added by mistake, as far as they are free", async () => {
  const { accountId } = await json("account", "create", "--name", "T", "--credits", "7");
  await json("account", "top-up", accountId, "--usd", "20", "--operation-id", "wrong");
  const call = ["account", "take-back", accountId, "--entry", "1"];
  const part = [...call, "--usd", "5.5", "--operation-id", "ticket-1"];
  const done = { accountId, unit: "usd_micros", entry: 1, takeBackEntry: 2, amount: 5_500_000 };
  expect(await json(...part)).toEqual({ ...done, replayed: false });
  expect(await json(...part)).toEqual({ ...done, replayed: true });
  for (const [more, told] of [
    [["--usd", "15"], /at most what is left of the entry/],
    [["--usd", "1", "--operation-id", "ticket-1"], /used before with other content/],
    [["--entry", "2"], /no such entry/],
    [["--unit", "credits", "--usd", "1"], /--amount for credits/],
  ] as const) {
    const { code, err } = await genmesh([...call, ...more]);
    expect({ code, err }).toEqual({ code: expect.any(Number), err: expect.stringMatching(told) });
    expect(code).not.toBe(0);
  }
  const { out } = await genmesh([...call, "--up-to"]);
  expect(out).toMatch(/^\$14\.50 of entry 1 were taken back\.\n/);
  const credits = await genmesh([...call, "--unit", "credits", "--amount", "7"]);
  expect(credits.out).toMatch(/^7 credits of entry 1 were taken back\.\n/);
  const left = await genmesh([...call, "--operation-id", "ticket-2"]);
  expect(left.err).toMatch(/--entry must be the number of an entry of which something is left/);
  const { out: exported } = await genmesh(["ledger", "export", accountId, "--format", "jsonl"]);
  const lines = exported.split("\n").filter((line) => line !== "");
  expect(lines.map((line) => JSON.parse(line).takeBackOf).filter((id) => id !== null)).toEqual([
    ...["credits-1", "usd_micros-1", "usd_micros-1"],
  ]);
  expect(await json("ledger", "audit", accountId)).toMatchObject({ ok: true });
  expect((await genmesh(["audit", "list", accountId])).out).toMatch(
    /account.take_back .* entry 1 .*"usd":"\$5.50".* done/,
  );
});

test("account close ends its keys, and audit list says who did what", async () => {
  const made = await json("account", "create", "--name", "Zeta", "--credits", "3");
  const { accountId, apiKey } = made;
  const wrong = await genmesh(["account", "close", accountId, "--confirm", "acct_x"]);
  expect({ code: wrong.code, err: wrong.err }).toEqual({
    ...{ code: 1, err: "genmesh: --confirm must be the id of the account\n" },
  });
  const call = ["account", "close", accountId, "--confirm", accountId];
  expect(await json(...call)).toEqual({ accountId, state: "closing" });
  expect((await genmesh(call)).out).toMatch(/is being closed/);
  expect(await status("/models", apiKey)).toBe(401);
  expect((await genmesh(["account", "list"])).out).toMatch(new RegExp(`${accountId} .* closing\n`));
  const late = await genmesh(["account", "top-up", accountId, "--credits", "1"]);
  expect(late.err).toMatch(/is closed, or being closed/);
  await genmesh(["key", "create", accountId]);
  const { actions } = await json("audit", "list", accountId);
  expect(
    actions.map((one: { action: string; outcome: string }) => [one.action, one.outcome]),
  ).toEqual([
    ["key.create", "refused"],
    ["account.close", "done"],
    ["account.close", "done"],
    ["account.create", "done"],
  ]);
  const { out } = await genmesh(["audit", "list", "--limit", "3"]);
  expect(out).toMatch(/^when +who +what +account +of +details +outcome\n/);
  expect(out).not.toContain("Zeta");
});
