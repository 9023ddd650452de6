import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { until } from "../support/until.ts";
import { type Document, ended, pausedWebhooks, startMediaWorld, submit } from "./media-world.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

/** The first upstream of this model is the scripted one, the second renders. */
const backedImage = {
  ...{ id: "backed-image", kind: "image", upstream: "scripted", fallbackUpstreams: ["studio"] },
  ...{ creditPrice: 1, sizes: ["64x64"] },
};
const settings = { env: { GENMESH_ADMIN_TOKEN: adminToken }, models: [backedImage] };
const { world, media, ...owned } = await startMediaWorld(settings);
afterAll(() => owned[Symbol.asyncDispose]());
ownWorldOnly();

const operator = operatorSession(world);
const { get, post } = operator;

beforeAll(async () => {
  if (isOwnWorld) await operator.signIn();
});

describe("operators do in the console what the command line does", () => {
  test("change a key as `genmesh key update` does, and show what it came to", async () => {
    const { accountId, keyId } = await world.caller();
    const wanted = { accountId, name: "App", models: ["scripted"], requestsPerMinute: 7 };
    const receiver = "https://receiver.example/hooks?token=hush";
    const made = await post("/keys", { ...wanted, webhookUrl: receiver });
    expect(made).toMatchObject({ status: 201, json: { models: ["scripted"] } });
    const { id, secret } = made.json;
    const patch = (changes: object) => operator.patch(`/keys/${id}`, changes);
    expect((await get(`/keys/${id}`)).json).toMatchObject({
      ...{ object: "key", id, name: "App", requestsPerMinute: 7, webhookUrl: receiver },
      ...{ lowBalanceUsdMicros: null, limitUsdMicros: null },
    });
    expect((await operator.patch(`/keys/${id}`, { disabled: true }, { secret: "" })).code).toBe(
      "secret_required",
    );
    expect((await patch({ disabled: true })).json).toMatchObject({ state: "disabled" });
    const app = world.holding(secret, { accountId, keyId: id });
    await until("it to be refused", async () => (await app.get("/models")).status === 401);
    expect((await patch({ disabled: false, name: "Shop" })).json).toMatchObject({
      ...{ id, state: "active", name: "Shop", models: ["scripted"] },
    });
    await until("it to be taken", async () => (await app.get("/models")).status === 200);
    const limits = { limitUsdMicros: 500, limit_reset: "daily", lowBalanceUsdMicros: 40 };
    const rights = { scopes: ["text"], models: null, requestsPerMinute: 9 };
    const changed = await patch({ ...limits, ...rights, webhookUrl: null });
    expect(changed.json).toMatchObject({
      ...{ ...limits, scopes: ["text"], models: [], requestsPerMinute: 9, webhookUrl: null },
    });
    expect((await get(`/keys/${id}`)).json).toEqual(changed.json);
    const without = { limitUsdMicros: null, lowBalanceUsdMicros: null, limit_reset: null };
    expect((await patch(without)).json).toMatchObject({
      ...{ limitUsdMicros: null, limit_reset: null, lowBalanceUsdMicros: null },
    });
    const misspelt = await patch({ limitUsdMicro: 1 });
    expect([misspelt.status, misspelt.code]).toEqual([400, "unsupported_parameter"]);
    expect((await patch({ limit_reset: "yearly" })).code).toBe("invalid_value");
    expect((await operator.patch("/keys/key_none", { name: "x" })).status).toBe(404);
    expect((await get(`/keys/${id.slice(0, -1)}`)).code).toBe("object_not_found");
    // The other key, which no change named, is unchanged.
    expect((await get(`/keys/${keyId}`)).json).toMatchObject({ state: "active", name: "" });

    const { json: log } = await get(`/audit?account=${accountId}&limit=100`);
    const lines = log.data.filter(({ target }: Document) => target === id).toReversed();
    expect(
      lines.map((one: Document) => `${one.action} ${one.details.changed ?? ""} ${one.outcome}`),
    ).toEqual([
      "key.create  done",
      "key.update disabled done",
      "key.update disabled, name done",
      `key.update ${Object.keys({ ...limits, ...rights }).join(", ")}, webhookUrl done`,
      `key.update ${Object.keys(without).join(", ")} done`,
    ]);
    expect(JSON.stringify(log)).not.toMatch(/receiver|hush|Shop|gm_/);
  });

  test("show and set when an account is told of its balance", async () => {
    const { accountId, ...caller } = await world.caller();
    const path = `/accounts/${accountId}/alerts`;
    const patch = (changes: object, of = path) => operator.patch(of, changes);
    const none = { object: "alerts", lowBalanceUsdMicros: null, webhookUrl: null };
    expect((await get(path)).json).toEqual(none);
    const set = { lowBalanceUsdMicros: 40, webhookUrl: "https://receiver.example/?token=hush" };
    expect((await patch(set)).json).toEqual({ ...none, ...set });
    const owner = await world.withKey(
      { accountId, ...caller },
      { scopes: [Scope.BILLING, Scope.KEYS] },
    );
    expect((await owner.get("/billing/alerts")).json).toMatchObject(set);
    const without = await patch({ lowBalanceUsdMicros: null });
    expect(without.json).toEqual({ ...none, webhookUrl: set.webhookUrl });
    expect((await get(path)).json).toEqual(without.json);
    expect((await patch({ webhookUrl: "ftp://x" })).code).toBe("invalid_value");
    expect((await patch({ webhook: null })).code).toBe("unsupported_parameter");
    for (const { code } of [
      await get("/accounts/acct_none/alerts"),
      await patch(set, "/accounts/acct_none/alerts"),
    ]) {
      expect(code).toBe("object_not_found");
    }
    const { json: log } = await get(`/audit?account=${accountId}`);
    expect(
      log.data.map((one: Document) => `${one.action} ${one.details.changed} ${one.outcome}`),
    ).toEqual([
      "account.alerts  refused",
      "account.alerts webhookUrl refused",
      "account.alerts lowBalanceUsdMicros done",
      "account.alerts lowBalanceUsdMicros, webhookUrl done",
    ]);
    expect(JSON.stringify(log)).not.toMatch(/receiver|hush/);
    await post(`/accounts/${accountId}/close`, { confirm: accountId });
    expect((await patch(set)).code).toBe("state_conflict");
  });

  test("list what was sent for an account, without its address, and send it again", async () => {
    const caller = await world.caller({ credits: 9n });
    const { accountId } = caller;
    const path = `/accounts/${accountId}/webhooks`;
    expect((await get(path)).json).toEqual({ object: "list", data: [], next: null });
    // Webhooks to this machine's own addresses are not delivered, so this one stays pending.
    const webhookUrl = "http://127.0.0.1:9/hooks?token=hush";
    for (const prompt of ["a", "b"]) {
      const order = { model: "small-image", prompt, webhookUrl };
      await ended(caller, await submit(caller, "images", order));
    }
    await until("both to be tried", async () => {
      const { json } = await get(path);
      return json.data.filter((one: Document) => one.lastError !== null).length === 2;
    });
    const paused = await pausedWebhooks(world, accountId);
    const { json: told } = await get(path);
    const { id } = told.data[0];
    expect(told.data[0]).toMatchObject({
      ...{ object: "webhook", type: "job.completed", keyId: caller.keyId, status: "pending" },
      ...{ lastStatus: null, lastError: "unsafe" },
    });
    expect(told.data.map((one: Document) => [one.id, one.attempts])).toEqual(
      paused.map(({ webhookId, attempts }) => [webhookId, attempts]),
    );
    const first = (await get(`${path}?limit=1`)).json;
    const second = (await get(`${path}?limit=1&after=${first.next}`)).json;
    expect([...first.data, ...second.data]).toEqual(told.data);
    const due = await post(`/webhooks/${id}/retry`, {});
    expect(due).toMatchObject({ status: 200, json: { id, status: "pending" } });
    const again = told.data[0].attempts + 1;
    await until("another try", async () => (await get(path)).json.data[0].attempts === again);
    expect(JSON.stringify([told, due.json])).not.toMatch(/127\.0|hush/);
    expect((await post("/webhooks/evt_none/retry", {})).status).toBe(404);
    expect((await get("/accounts/acct_none/webhooks")).code).toBe("object_not_found");
    expect((await get(`${path}?after=x`)).code).toBe("invalid_value");
    const { json: log } = await get(`/audit?account=${accountId}`);
    expect(log.data).toMatchObject([
      { action: "webhook.retry", accountId, target: id, outcome: "done" },
    ]);
  });

  test("write what moved an account's balances to a file, as its own export has it", async () => {
    const caller = await world.caller({ usdMicros: 1_000_000n, credits: 5n });
    const { accountId } = caller;
    const path = `${operator.origin}/console/api/admin/accounts/${accountId}/entries/export`;
    const file = (query: string) =>
      fetch(`${path}${query}`, { headers: { cookie: operator.cookie } });
    world.play();
    expect((await caller.post("/responses", { model: "scripted", input: "Hi" })).status).toBe(200);
    const reader = await world.withKey(caller, { scopes: [Scope.BILLING, Scope.USAGE_READ_ALL] });
    const own = await until("the charge", async () => {
      const { text } = await reader.get("/billing/entries?format=csv");
      return text.includes(",charge,") ? text : undefined;
    });
    const csv = await file("");
    expect(csv.headers.get("content-type")).toMatch(/^text\/csv/);
    expect(csv.headers.get("content-disposition")).toBe(
      `attachment; filename="entries-${accountId}.csv"`,
    );
    // An operator's columns begin with those of the account.
    const [rows, ownRows] = [await csv.text(), own].map((text) => text.split("\r\n"));
    expect(rows?.map((row, n) => row.slice(0, ownRows?.[n]?.length))).toEqual(ownRows);
    const { text: ownLines } = await reader.get("/billing/entries?format=jsonl");
    const lines = await (await file("?format=jsonl")).text();
    const entries = documentsOf(lines);
    expect(entries).toMatchObject(documentsOf(ownLines));
    expect(entries.map(({ kind }) => kind)).toEqual(["charge", "grant", "grant"]);

    const chargedAt = encodeURIComponent(entries[0].createdAt);
    const since = await (await file(`?format=jsonl&from=${chargedAt}`)).text();
    expect(since).toBe(`${lines.split("\n")[0]}\n`);
    const before = await (await file(`?format=jsonl&to=${chargedAt}`)).text();
    expect(before).toBe(lines.split("\n").slice(1).join("\n"));
    expect((await file("?from=yesterday")).status).toBe(400);
    expect((await file("?format=xml")).status).toBe(400);
    expect((await get("/accounts/acct_none/entries/export")).code).toBe("object_not_found");
    expect((await fetch(path)).status).toBe(401);
  });

  test.each([
    [429, "too_many_requests"],
    [503, "unavailable"],
    [402, "account_empty"],
    [401, "denied"],
  ])(
    "say of a job whose upstream answered %i why it was turned away, and who took it",
    async (status, reason) => {
      // An upstream rests after such an answer, so each has a world of its own.
      await using own = await startMediaWorld(settings);
      const session = operatorSession(own.world);
      await session.signIn();
      const caller = await own.world.caller({ credits: 9n });
      own.media.next("POST /images/generations", { kind: "status", status });
      const job = await submit(caller, "images", { model: "backed-image", prompt: "a" });
      await ended(caller, job);
      const { json } = await session.get(`/jobs/${job.id}`);
      expect(json).toMatchObject({
        ...{ id: job.id, keyId: caller.keyId, upstream: "studio" },
        wait: { reason, times: 1 },
      });
    },
  );
});

/** The documents of a JSONL file. */
function documentsOf(lines: string): Document[] {
  return lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}
