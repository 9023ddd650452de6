import { beforeEach, expect, test } from "vitest";
import {
  attemptLeaseMs,
  bodyKeptMs,
  deliverForMs,
  pausesMs,
  webhookKeptMs,
} from "../../services/media/webhooks/limits.ts";
import { firstSecrets, rotated } from "../../services/media/webhooks/sign.ts";
import type { WebhookStore } from "../../services/media/webhooks/store.ts";
import {
  newWebhook,
  type Webhook,
  type WebhookCommand,
} from "../../services/media/webhooks/webhook.ts";

const now = Date.UTC(2026, 0, 15, 12);
const dayMs = 24 * 3_600_000;

/** A webhook that is due at `at`. Every field that may be long or odd is so. */
function webhookOf(webhookId: string, { account = "acct_a", at = now } = {}): Webhook {
  const body = JSON.stringify({ data: `é'"\u{1f30a}${"x".repeat(8_000)}` });
  const url = "https://example.com/é?a=b%20'c'";
  const more = { accountId: account, jobId: "job_a", type: "job.completed", url, body } as const;
  return newWebhook({ webhookId, ...more }, at);
}

const answered = (attempt: number, status: number, at = now) =>
  ({ kind: "end", attempt, result: { kind: "answered", status }, now: at }) as const;

/** The rules for every store of webhooks. `open` gives two clients of one new store. */
export function webhookStoreContract(open: () => Promise<[WebhookStore, WebhookStore]>): void {
  let store: WebhookStore;
  let other: WebhookStore;
  beforeEach(async () => {
    [store, other] = await open();
  });
  const must = async (webhookId: string, ...commands: WebhookCommand[]) => {
    let webhook: Webhook | undefined;
    for (const command of commands) {
      webhook = await store.apply(webhookId, command);
      if (!webhook) throw new Error(`${command.kind} was not allowed`);
    }
    return webhook as Webhook;
  };

  test("a webhook is written down once, and comes out as it went in", async () => {
    const webhook = webhookOf("evt_a");
    await store.insert(webhook);
    await other.insert({ ...webhook, body: "another", createdAt: 1 });
    expect(await other.find("evt_a")).toEqual(webhook);
    expect(await other.find("evt_b")).toBeUndefined();
    expect(await other.apply("evt_b", { kind: "retry", now })).toBeUndefined();
  });

  test("those without an end are counted, of all accounts", async () => {
    for (const id of ["evt_a", "evt_b", "evt_c"]) await store.insert(webhookOf(id));
    await store.insert(webhookOf("evt_d", { account: "acct_b" }));
    expect(await other.waiting(now)).toBe(4);
    await must("evt_a", { kind: "begin", now });
    expect(await other.waiting(now)).toBe(4);
    await must("evt_a", answered(1, 200));
    expect(await other.waiting(now)).toBe(3);
  });

  test("an account's are erased in any state, with its secrets, and no other account's", async () => {
    for (const id of ["evt_a", "evt_b", "evt_c"]) await store.insert(webhookOf(id));
    await store.insert(webhookOf("evt_d", { account: "acct_b" }));
    await store.insertSecrets(firstSecrets("acct_a", "a", now));
    expect(await other.eraseAccount("acct_a", 2)).toBe(2);
    expect(await other.eraseAccount("acct_a", 2)).toBe(1);
    expect(await other.eraseAccount("acct_a", 2)).toBe(0);
    expect(await store.findSecrets("acct_a")).toBeUndefined();
    expect((await store.find("evt_d"))?.accountId).toBe("acct_b");
  });

  test("one process begins an attempt that is due; it counts as lost when its lease is over", async () => {
    await store.insert(webhookOf("evt_a"));
    expect(await store.apply("evt_a", { kind: "begin", now: now - 1 })).toBeUndefined();
    const both = [store, other].map((one) => one.apply("evt_a", { kind: "begin", now }));
    const begun = (await Promise.all(both)).filter((one) => one !== undefined);
    expect(begun).toMatchObject([{ attempts: 1, dueAt: now + attemptLeaseMs, lastAttemptAt: now }]);
    const lost = now + attemptLeaseMs;
    expect(await store.nextDue("", lost - 1)).toBeUndefined();
    expect(await other.apply("evt_a", { kind: "begin", now: lost })).toMatchObject({ attempts: 2 });
    // A late failure of the first attempt does not count. Its late success does.
    expect(await store.apply("evt_a", answered(1, 500, lost))).toBeUndefined();
    expect(await store.apply("evt_a", answered(1, 200, lost))).toMatchObject({
      ...{ state: "delivered", lastStatus: 200, dueAt: undefined, expiresAt: lost + webhookKeptMs },
    });
    expect(await store.apply("evt_a", answered(2, 500, lost))).toBeUndefined();
  });

  test("what fails is due again, later each time, and at its end after a day", async () => {
    await store.insert(webhookOf("evt_a"));
    let at = now;
    const pauses: number[] = [];
    let webhook: Webhook;
    do {
      const { attempts } = await must("evt_a", { kind: "begin", now: at });
      webhook = await must("evt_a", answered(attempts, 503, at));
      if (webhook.dueAt !== undefined) pauses.push(webhook.dueAt - at);
      at = webhook.dueAt ?? at;
    } while (webhook.state === "pending");
    expect(webhook).toMatchObject({ state: "failed", lastStatus: 503, lastError: "status" });
    expect(at).toBe(now + dayMs);
    expect(pauses.slice(0, pausesMs.length)).toEqual(pausesMs);
    expect(await store.nextDue("", at + dayMs)).toBeUndefined();
    const again = await must("evt_a", { kind: "retry", now: at });
    expect(again).toMatchObject({ state: "pending", dueAt: at, giveUpAt: at + deliverForMs });
    expect(await other.find("evt_a")).toEqual(again);
  });

  test.each([
    [410, { state: "stopped", lastError: "status" }],
    [302, { state: "pending", lastError: "redirect" }],
    [204, { state: "delivered", lastError: undefined }],
  ])("%i leaves it %j", async (status, expected) => {
    await store.insert(webhookOf("evt_a"));
    await must("evt_a", { kind: "begin", now }, answered(1, status));
    const { state, lastError, lastStatus } = (await other.find("evt_a")) as Webhook;
    expect({ state, lastError, lastStatus }).toEqual({ ...expected, lastStatus: status });
  });

  test("a day after its end nothing is kept to be sent, but of an alert; a retry brings it anew", async () => {
    const retry = { kind: "retry", now } as const;
    const { body } = webhookOf("evt_a");
    for (const webhookId of ["evt_a", "evt_b", "evt_c"]) await store.insert(webhookOf(webhookId));
    await store.insert({ ...webhookOf("evt_d"), jobId: "", type: "balance.low" });
    for (const [webhookId, status] of [
      ["evt_a", 200],
      ["evt_b", 410],
      ["evt_c", 500],
      ["evt_d", 200],
    ] as const) {
      await must(webhookId, { kind: "begin", now }, answered(1, status));
    }
    const bodies = async () => {
      const found = ["evt_a", "evt_b", "evt_c", "evt_d"].map((id) => other.find(id));
      return (await Promise.all(found)).map((one) => one?.body);
    };
    await store.clear(now + bodyKeptMs - 1, 9);
    expect(await bodies()).toEqual([body, body, body, body]);
    await store.clear(now + bodyKeptMs, 1);
    expect((await bodies()).filter((one) => one === "")).toHaveLength(1);
    await store.clear(now + bodyKeptMs, 9);
    expect(await bodies()).toEqual(["", "", body, body]);
    expect(await store.apply("evt_a", retry)).toBeUndefined();
    expect(await must("evt_a", { ...retry, body: "anew" })).toMatchObject({ body: "anew" });
    expect(await must("evt_d", retry)).toMatchObject({ body });
  });

  test("an account's oldest of a type go, in any state, and nothing else", async () => {
    for (let n = 1; n <= 6; n++) {
      const webhook = webhookOf(`evt_${n}`, { at: n });
      await store.insert({ ...webhook, type: "job.cancelled" });
      await store.insert({ ...webhook, webhookId: `evt_f${n}`, type: "job.failed" });
      await store.insert({
        ...webhook,
        webhookId: `evt_b${n}`,
        accountId: "acct_b",
        type: "job.cancelled",
      });
    }
    await must("evt_1", { kind: "begin", now });
    const asked = { accountId: "acct_a", type: "job.cancelled" } as const;
    const left = async (accountId: string) =>
      (await other.list({ accountId, after: undefined, limit: 99 })).map((one) => one.webhookId);
    await store.trim({ ...asked, newest: 3, limit: 2 });
    expect(await left("acct_a")).toHaveLength(10);
    expect(await left("acct_a")).toContain("evt_1");
    await store.trim({ ...asked, newest: 3, limit: 2 });
    expect((await left("acct_a")).filter((id) => /^evt_\d$/.test(id))).toEqual([
      "evt_6",
      "evt_5",
      "evt_4",
    ]);
    expect((await left("acct_a")).filter((id) => /^evt_f/.test(id))).toHaveLength(6);
    expect(await left("acct_b")).toHaveLength(6);
    expect(await store.apply("evt_1", answered(1, 200))).toBeUndefined();
  });

  test("what is due is found account by account, the longest due first", async () => {
    await store.insert(webhookOf("evt_b1", { account: "acct_b", at: now - 1 }));
    await store.insert(webhookOf("evt_b2", { account: "acct_b", at: now - 9 }));
    await store.insert(webhookOf("evt_a", { account: "acct_a", at: now + 1 }));
    await store.insert(webhookOf("evt_c", { account: "acct_c" }));
    const due = async (after: string, at = now) => (await store.nextDue(after, at))?.webhookId;
    expect(await due("")).toBe("evt_b2");
    expect(await due("acct_b")).toBe("evt_c");
    expect(await due("acct_c")).toBeUndefined();
    expect(await due("", now + 1)).toBe("evt_a");
    await must("evt_b2", { kind: "begin", now });
    expect(await due("")).toBe("evt_b1");
  });

  test("an account's hosts are found one by one, each with what waits longest for it", async () => {
    const at = (webhookId: string, url: string, dueAt = now) =>
      store.insert({ ...webhookOf(webhookId, { at: dueAt }), url });
    await at("evt_b1", "https://b.example/x");
    await at("evt_b2", "https://b.example/y", now - 5);
    await at("evt_a", "https://a.example:8443/", now + 60_000);
    await at("evt_c", "https://c.example/");
    await store.insert(webhookOf("evt_d", { account: "acct_b" }));
    await must("evt_c", { kind: "begin", now }, answered(1, 200));
    const first = { host: "a.example:8443", webhookId: "evt_a", dueAt: now + 60_000 };
    expect(await other.firstOfNextHost("acct_a", "")).toEqual(first);
    const second = { host: "b.example", webhookId: "evt_b2", dueAt: now - 5 };
    expect(await other.firstOfNextHost("acct_a", first.host)).toEqual(second);
    expect(await other.firstOfNextHost("acct_a", second.host)).toBeUndefined();
    await must("evt_c", { kind: "retry", now });
    expect(await other.firstOfNextHost("acct_a", second.host)).toMatchObject({ host: "c.example" });
  });

  test("a key's are listed alone; those of no known key are the account's", async () => {
    const insert = (name: string, at: number, keyId?: string) =>
      store.insert({ ...webhookOf(`evt_${name}`, { at }), keyId });
    await insert("a", 1, "key_a");
    await insert("b", 2, "key_b");
    await insert("c", 3, "key_a");
    await insert("d", 4);
    const list = async (keyId?: string, after?: { createdAt: number; webhookId: string }) => {
      const found = await other.list({ accountId: "acct_a", keyId, after, limit: 9 });
      return found.map((one) => one.webhookId);
    };
    expect(await list("key_a")).toEqual(["evt_c", "evt_a"]);
    expect(await list("key_a", { createdAt: 3, webhookId: "evt_c" })).toEqual(["evt_a"]);
    expect(await list("key_none")).toEqual([]);
    expect(await list()).toEqual(["evt_d", "evt_c", "evt_b", "evt_a"]);
    expect((await other.find("evt_b"))?.keyId).toBe("key_b");
    expect((await other.find("evt_d"))?.keyId).toBeUndefined();
    // The same key name in another account finds nothing.
    expect(
      await other.list({ accountId: "acct_b", keyId: "key_a", after: undefined, limit: 9 }),
    ).toEqual([]);
  });

  test("an account's are listed newest first, page by page", async () => {
    for (const [name, at] of [
      ["a", 1],
      ["b", 2],
      ["c", 2],
      ["d", 3],
    ] as const) {
      await store.insert(webhookOf(`evt_${name}`, { at }));
    }
    await store.insert(webhookOf("evt_e", { account: "acct_b", at: 2 }));
    const list = async (after?: { createdAt: number; webhookId: string }) =>
      (await other.list({ accountId: "acct_a", after, limit: 2 })).map((one) => one.webhookId);
    expect(await list()).toEqual(["evt_d", "evt_c"]);
    expect(await list({ createdAt: 2, webhookId: "evt_c" })).toEqual(["evt_b", "evt_a"]);
    expect(await list({ createdAt: 1, webhookId: "evt_a" })).toEqual([]);
    // Without the sent body, which is most of it.
    const { body, ...listed } = webhookOf("evt_d", { at: 3 });
    const [first] = await other.list({ accountId: "acct_a", after: undefined, limit: 1 });
    expect(first).toEqual(listed);
    expect(body).not.toBe("");
  });

  test("they leave the log when their time is over, those alone", async () => {
    for (const name of ["evt_a", "evt_b", "evt_c", "evt_d"]) await store.insert(webhookOf(name));
    for (const name of ["evt_a", "evt_b", "evt_d"]) {
      await must(name, { kind: "begin", now }, answered(1, 200));
    }
    await must("evt_b", { kind: "retry", now });
    const over = now + webhookKeptMs;
    await store.clear(over - 1, 10);
    expect(await store.list({ accountId: "acct_a", after: undefined, limit: 9 })).toHaveLength(4);
    await store.clear(over, 1);
    expect(await store.list({ accountId: "acct_a", after: undefined, limit: 9 })).toHaveLength(3);
    await store.clear(over, 10);
    const left = await store.list({ accountId: "acct_a", after: undefined, limit: 9 });
    expect(left.map((one) => one.webhookId)).toEqual(["evt_c", "evt_b"]);
  });

  test("what a clock that was ahead has put off is brought forward, nothing else", async () => {
    await store.insert(webhookOf("evt_a", { at: now + 30 * dayMs }));
    await store.insert(webhookOf("evt_b", { at: now + 5_000 }));
    await store.bringForward(now, now + 7);
    expect((await other.find("evt_a"))?.dueAt).toBe(now + 7);
    expect((await other.find("evt_b"))?.dueAt).toBe(now + 5_000);
  });

  test("an account has one first secret, and a rotation happens once", async () => {
    expect(await store.findSecrets("acct_a")).toBeUndefined();
    const first = firstSecrets("acct_a", "whsec_1", now);
    const both = [store, other].map((one, at) =>
      one.insertSecrets({ ...first, current: `whsec_${at}` }),
    );
    const [mine, theirs] = await Promise.all(both);
    expect(mine).toEqual(theirs);
    if (!mine) throw new Error("no secret");
    const next = rotated(mine, "whsec_2", "op", now);
    expect(await store.replaceSecrets(mine.current, next)).toBe(true);
    expect(await other.replaceSecrets(mine.current, rotated(mine, "whsec_3", undefined, now))).toBe(
      false,
    );
    expect(await other.findSecrets("acct_a")).toEqual(next);
    expect(await other.findSecrets("acct_b")).toBeUndefined();
  });
}
