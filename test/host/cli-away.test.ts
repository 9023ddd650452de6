import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { runOperatorCommand } from "../support/operator-command.ts";
import { type BreakingFront, openBreakingFront } from "./breaking-front.ts";
import { startRunning, tempFolder } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
let front: BreakingFront;
beforeAll(async () => {
  world = await startHostWorld();
});
beforeEach(async () => {
  front = await openBreakingFront(world.mesh.grpcAddress);
  return () => front[Symbol.asyncDispose]();
});
afterAll(() => world[Symbol.asyncDispose]());

/** Runs the command through the front. */
const genmesh = (...args: string[]) => runCommand(world, [...args, "--server", front.address]);

async function json(...args: string[]) {
  const { code, out, err } = await genmesh(...args, "--json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out);
}

const timesOf = (method: string) => front.calls.filter((one) => one === method).length;

test.each(["before", "after"] as const)(
  "an account is made once where the connection breaks %s it is made, and its key is shown",
  async (how) => {
    for (const method of ["BeginAction", "CreateAccount", "Grant"]) front.breaks(method, how, 2);
    const made = await json("account", "create", "--name", `of ${how}`, "--usd", "5");
    expect(made.apiKey).toMatch(/^gm_/);
    expect(timesOf("CreateAccount")).toBe(3);
    const headers = { authorization: `Bearer ${made.apiKey}` };
    expect((await fetch(`${world.mesh.baseUrl}/models`, { headers })).status).toBe(200);
    const { accounts } = await json("account", "list");
    expect(accounts.filter((one: { name: string }) => one.name === `of ${how}`)).toHaveLength(1);
    const { usdMicros } = await json("account", "balance", made.accountId);
    expect(usdMicros.available).toBe(5_000_000);
  },
);

test("people are told once that a service is away", async () => {
  front.breaks("ListAccounts", "before", 2);
  const { code, err } = await genmesh("account", "list");
  expect({ code, err }).toEqual({
    code: 0,
    err: `genmesh: the service auth at http://${front.address} is away; trying for 10 s\n`,
  });
});

test("what would be done twice is not repeated, and the command says that it may have been done", async () => {
  const { accountId } = await json("account", "create", "--name", "K");
  const { keyId } = await json("key", "create", accountId);
  for (const [method, ...words] of [
    ["AddKey", "key", "create", accountId],
    ["RotateKey", "key", "rotate", keyId],
  ]) {
    front.breaks(method ?? "", "after", 1);
    const { code, err } = await genmesh(...words);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^genmesh: the service auth at \S+ broke off; it may have done what was asked, .+INTERNAL_ERROR.+\n$/,
      ),
    });
    expect(timesOf(method ?? "")).toBe(method === "AddKey" ? 2 : 1);
  }
});

test("every call of the other commands is repeated", async () => {
  const { accountId, keyId } = await json("account", "create", "--name", "O", "--credits", "1");
  const calls: [method: string, ...words: string[]][] = [
    ["ListAccounts", "account", "list"],
    ["GetBalance", "account", "balance", accountId],
    ["Grant", "account", "top-up", accountId, "--usd", "1"],
    ["UpdateAlerts", "account", "alerts", accountId, "--low-balance-usd", "1"],
    ["SetAccountState", "account", "suspend", accountId],
    ["SetAccountState", "account", "resume", accountId],
    ["UpdateAccount", "account", "set", accountId, "--rate", "9"],
    ["ListKeys", "key", "list", accountId],
    ["UpdateKey", "key", "update", keyId, "--name", "n"],
    ["RevokeKey", "key", "revoke", keyId],
    ["AuditLedger", "ledger", "audit"],
    ["ListLines", "ledger", "export", accountId],
    ["ListHolds", "hold", "list"],
    ["ListReviews", "hold", "list"],
    ["ListAccountJobs", "job", "list", accountId],
    ["ListAccountWebhooks", "webhook", "list", accountId],
    ["ListActions", "audit", "list"],
    ["CloseAccount", "account", "close", accountId, "--confirm", accountId],
  ];
  for (const [method, ...words] of calls) {
    front.breaks(method, "after", 1);
    const before = timesOf(method);
    const { code } = await genmesh(...words);
    expect({ method, code }).toEqual({ method, code: 0 });
    expect({ method, times: timesOf(method) - before }).toEqual({ method, times: 2 });
  }
});

test("a process that comes up while the command waits is reached", {
  timeout: 60_000,
}, async () => {
  await using folder = await tempFolder();
  const port = await freePort();
  const adminToken = "admin-token-of-the-tests";
  const env = { GENMESH_DATA_DIR: folder.path, GENMESH_ADMIN_TOKEN: adminToken };
  const args = ["account", "create", "--name", "early", "--server", `127.0.0.1:${port}`, "--json"];
  const early = runOperatorCommand(args, env);
  await using _mesh = await startRunning({ ...env, GRPC_PORT: `${port}` });
  expect(await early).toMatchObject({ code: 0, err: "" });
});

test("what stays away is named, with what to look at", { timeout: 60_000 }, async () => {
  const server = `127.0.0.1:${await freePort()}`;
  const gateway = `http://${server}/v1`;
  const token = { GENMESH_ADMIN_TOKEN: "admin-token-of-the-tests" };
  const [one, mesh, api] = await Promise.all([
    runOperatorCommand(["account", "list", "--json", "--server", server], token),
    runOperatorCommand(["hold", "list", "--json"], {
      ...token,
      GENMESH_TEXT_URL: `http://${server}`,
    }),
    runOperatorCommand(["generate", "image", "x", "-o", "x.png", "--base-url", gateway], {
      GENMESH_API_KEY: "gm_0123456789abcdefghij",
    }),
  ]);
  expect(one.code).toBe(1);
  expect(JSON.parse(one.err).error.message).toMatch(
    /^the service auth at http:\S+ is away: it did not answer within 10 s; is it running, and is --server .+ECONNREFUSED.+$/,
  );
  expect(mesh.code).toBe(1);
  expect(JSON.parse(mesh.err).error.message).toMatch(
    /^the service text at http:\S+ is away: .+ is GENMESH_TEXT_URL its address/,
  );
  expect(api.code).toBe(1);
  expect(api.err).toMatch(
    /^genmesh: \S+ is away; trying for 10 s\ngenmesh: \S+ cannot be reached: /,
  );
});
