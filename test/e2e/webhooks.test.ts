import { Webhook } from "standardwebhooks";
import { afterAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { until } from "../support/until.ts";
import { type Received, startWebhookReceiver, verified } from "../support/webhook-receiver.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { send } from "./key-owners.ts";
import { creditsOf, ended, heldImages, startMediaWorld, submit } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const { world, media, png, ...rest } = await startMediaWorld({
  env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
});
const receiver = await startWebhookReceiver();
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await rest[Symbol.asyncDispose]();
});
ownWorldOnly();

const hourMs = 3_600_000;
let paths = 0;
/** A path of the receiver for one use. */
const newPath = () => `/hooks/${++paths}?token=url-secret-${paths}`;
/** A key of the caller's account that manages its webhooks. */
const keeperOf = (caller: Caller) => world.withKey(caller, { scopes: [Scope.WEBHOOKS] });
const secretOf = async (caller: Caller) =>
  (await (await keeperOf(caller)).get("/webhooks/secret")).json;
const webhooksOf = async (caller: Caller) => (await caller.get("/webhooks")).json.data;
const image = (path: string, more: object = {}) => ({
  ...{ model: "scripted-image", prompt: "a boat", size: "64x64" },
  ...{ webhookUrl: `${receiver.url}${path}` },
  ...more,
});

describe("what a receiver is sent", () => {
  test("the end of a job, signed by Standard Webhooks, with the job as it is", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    const job = await submit(caller, "images", image(path));
    expect(job).not.toHaveProperty("webhookUrl");
    const [came] = (await receiver.took(path, 1)) as [Received];
    const { secret } = await secretOf(caller);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const told = verified(came, secret);
    const done = await ended(caller, job);
    expect(told).toEqual({ type: "job.completed", timestamp: done.completedAt, data: done });
    expect(came.headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": "genmesh",
      "webhook-id": job.id.replace("job_", "evt_"),
    });
    expect(came.headers).not.toHaveProperty("traceparent");
    const stranger = await secretOf(await world.caller());
    expect(() => verified(came, stranger.secret)).toThrow(/No matching signature/);
    expect(() => verified({ ...came, body: `${came.body} ` }, secret)).toThrow();
    const list = await until("the log", async () => {
      const found = await webhooksOf(caller);
      return found[0]?.status === "delivered" ? found : undefined;
    });
    expect(list).toEqual([
      {
        ...{ id: came.id, object: "webhook", type: "job.completed", jobId: job.id },
        ...{ url: `${receiver.url}${path}`, status: "delivered", attempts: 1, lastStatus: 204 },
        ...{ lastError: null, createdAt: expect.any(String), lastAttemptAt: expect.any(String) },
        nextAttemptAt: null,
      },
    ]);
  });

  test.each([
    ["videos", { model: "text-only", prompt: "waves" }],
    ["music", { model: "music-1", mode: "instrumental", title: "Calm" }],
  ] as const)("the end of %s", async (area, body) => {
    const caller = await world.caller({ credits: 500n });
    const path = newPath();
    const job = await submit(caller, area, { ...body, webhookUrl: receiver.url + path });
    const done = await ended(caller, job);
    const [came] = (await receiver.took(path, 1)) as [Received];
    const { data } = verified(came, (await secretOf(caller)).secret);
    expect(data).toEqual(done);
  });

  test("the end of a job that fails", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    media.next("POST /images/generations", { kind: "status", status: 400 });
    const job = await submit(caller, "images", image(path));
    const done = await ended(caller, job);
    const [came] = (await receiver.took(path, 1)) as [Received];
    const told = verified(came, (await secretOf(caller)).secret);
    expect(told).toMatchObject({ type: "job.failed", data: { status: "failed" } });
    expect(told.data).toEqual(done);
  });

  test("the end of a job that its caller cancelled, and then deleted", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    const held = heldImages(png);
    media.next("POST /images/generations", held.behaviour);
    const fields = { metadata: { order: "A-1" } };
    const job = await submit(caller, "images", image(path, fields));
    const cancelled = await caller.post(`/images/generations/${job.id}/cancel`, {});
    held.open();
    const removed = await send(caller, "DELETE", `/images/generations/${job.id}`);
    expect([cancelled.status, removed.status]).toEqual([200, 200]);
    const [came] = (await receiver.took(path, 1)) as [Received];
    const told = verified(came, (await secretOf(caller)).secret);
    expect(told).toMatchObject({
      type: "job.cancelled",
      data: { ...fields, status: "failed", error: { code: "job_cancelled" } },
    });
    expect(told.data).toEqual(cancelled.json);
    expect(await creditsOf(caller)).toMatchObject({ reserved: 0, spendable: 5, monthSpent: 0 });
    const retried = await caller.post(`/webhooks/${came.id}/retry`, "");
    expect(retried.status).toBe(200);
    const [, again] = await receiver.took(path, 2);
    expect(again).toMatchObject({ id: came.id, body: came.body });
  });

  test("a submission that is repeated is told of once; another URL under its key is refused", async () => {
    const caller = await world.caller({ credits: 5n });
    const [path, other] = [newPath(), newPath()];
    const options = { idempotencyKey: "k" };
    const job = await submit(caller, "images", image(path), options);
    expect(await submit(caller, "images", image(path), options)).toMatchObject({ id: job.id });
    const refused = await caller.post("/images/generations", image(other), options);
    expect(refusalOf(refused)).toBe("422 idempotency_error idempotency_key_reused null");
    await receiver.took(path, 1);
    expect(await webhooksOf(caller)).toHaveLength(1);
  });
});

describe("the address of a key", () => {
  test("is told of its jobs that name no other, until it is removed", {
    timeout: 240_000,
  }, async () => {
    const account = await world.caller({ credits: 9n });
    const owner = await world.withKey(account, { scopes: [Scope.KEYS, Scope.IMAGES] });
    const [path, other] = [newPath(), newPath()];
    const fields = { name: "n", webhookUrl: `${receiver.url}${path}` };
    const { data, key } = (await owner.post("/keys", fields)).json;
    expect(data.webhookUrl).toBe(fields.webhookUrl);
    const keyed = world.holding(key);
    const plain = { model: "scripted-image", prompt: "a boat", size: "64x64" };
    const first = await submit(keyed, "images", plain);
    await submit(keyed, "images", image(other));
    await receiver.took(other, 1);
    const [came] = (await receiver.took(path, 1)) as [Received];
    expect(came.id).toBe(first.id.replace("job_", "evt_"));
    const keyPath = `/keys/${data.id}`;
    const change = (webhookUrl: unknown) => send(owner, "PATCH", keyPath, { webhookUrl });
    expect(refusalOf(await change("ftp://x.example/"))).toBe(
      "400 invalid_request_error invalid_value webhookUrl",
    );
    expect((await send(owner, "PATCH", keyPath, { name: "m" })).json.data).toMatchObject({
      ...{ name: "m", webhookUrl: fields.webhookUrl },
    });
    expect((await change(null)).json.data.webhookUrl).toBeNull();
    const told = await until("a job that tells no address", async () => {
      const job = await submit(keyed, "images", plain);
      await ended(keyed, job);
      const { data: webhooks } = (await keyed.get("/webhooks?limit=100")).json;
      return webhooks.every((one: { jobId: string }) => one.jobId !== job.id) ? job : undefined;
    });
    await receiver.took(path, 1);
    expect(receiver.received.filter(({ id }) => id === told.id.replace("job_", "evt_"))).toEqual(
      [],
    );
  });
});

test.each([
  [7, "invalid_type"],
  ["ftp://example.com/", "invalid_value"],
  ["example.com/hook", "invalid_value"],
  ["https://user:pass@example.com/", "invalid_value"],
  [`https://example.com/${"x".repeat(2_048)}`, "invalid_value"],
])("no job is made for the address %j", async (webhookUrl, code) => {
  const caller = await world.caller({ credits: 5n });
  for (const [area, body] of [
    ["images", image("")],
    ["videos", { model: "text-only", prompt: "waves" }],
    ["music", { model: "music-1", mode: "instrumental", title: "Calm" }],
  ] as const) {
    const answer = await caller.post(`/${area}/generations`, { ...body, webhookUrl });
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} webhookUrl`);
  }
});

describe("an answer that is no 2xx", () => {
  test("is followed by another attempt, with the same id and body, until it is one", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    const failures = [500, 302, 429];
    const statuses = [...failures, 200];
    receiver.answer = (response, { path: came }) => {
      const status = came === path ? (statuses.shift() ?? 500) : 204;
      response.writeHead(status, { location: `${receiver.url}/elsewhere` }).end("thanks");
    };
    await submit(caller, "images", image(path));
    for (const [i, status] of failures.entries()) {
      await receiver.took(path, i + 1);
      const [one] = await until("the end of an attempt", async () => {
        const found = await webhooksOf(caller);
        return found[0]?.attempts === i + 1 && found[0].lastStatus === status ? found : undefined;
      });
      expect(one).toMatchObject({ status: "pending", nextAttemptAt: expect.any(String) });
      await world.later(Date.parse(one.nextAttemptAt) - world.now());
    }
    const came = await receiver.took(path, 4);
    expect(new Set(came.map(({ id }) => id)).size).toBe(1);
    expect(new Set(came.map(({ body }) => body)).size).toBe(1);
    await until("delivery", async () => (await webhooksOf(caller))[0].status === "delivered");
    expect(receiver.received.filter((one) => one.path === "/elsewhere")).toEqual([]);
  });

  test("410 stops it, and a retry by hand begins anew", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    receiver.answer = (response) => response.writeHead(410).end();
    await submit(caller, "images", image(path));
    const [stopped] = await until("410", async () => {
      const found = await webhooksOf(caller);
      return found[0]?.status === "stopped" ? found : undefined;
    });
    expect(stopped).toMatchObject({ attempts: 1, lastStatus: 410, nextAttemptAt: null });
    receiver.answer = (response) => response.writeHead(200).end();
    const retried = await caller.post(`/webhooks/${stopped.id}/retry`, "");
    expect([retried.status, retried.json.status]).toEqual([200, "pending"]);
    await receiver.took(path, 2);
    await until("delivery", async () => (await webhooksOf(caller))[0].status === "delivered");
  });

  test("of a day is the end; none at all is too", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    receiver.answer = (response) => response.destroy();
    await submit(caller, "images", image(path));
    const seen = new Set<string>();
    await until(
      "the end of a day",
      async () => {
        const [one] = await webhooksOf(caller);
        if (one?.lastError) seen.add(one.lastError);
        if (one?.status === "failed") return one;
        await world.later(hourMs);
        return undefined;
      },
      { withinMs: 60_000 },
    );
    expect([...seen]).toEqual(["unreachable"]);
    expect(receiver.received.filter((one) => one.path === path).length).toBeGreaterThan(8);
  });
});

describe("the secret", () => {
  test("is rotated: both are valid for a day, then the new one alone", {
    timeout: 240_000,
  }, async () => {
    receiver.answer = (response) => response.writeHead(204).end();
    const caller = await world.caller({ credits: 5n });
    const before = await secretOf(caller);
    const once = { idempotencyKey: "rotation-1" };
    const keeper = await keeperOf(caller);
    const rotated = (await keeper.post("/webhooks/secret/rotate", "", once)).json;
    const again = await keeper.post("/webhooks/secret/rotate", "", once);
    expect([again.headers.get("idempotency-replayed"), again.json]).toEqual(["true", rotated]);
    expect(rotated).toMatchObject({ previousSecret: before.secret });
    expect(rotated.secret).not.toBe(before.secret);
    expect(await secretOf(caller)).toEqual(rotated);
    const signers = async () => {
      const path = newPath();
      await submit(caller, "images", image(path));
      const [{ id, body, headers }] = (await receiver.took(path, 1)) as [Received];
      const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
      const sent = String(headers["webhook-signature"]).split(" ");
      return [before.secret, rotated.secret].map((secret) =>
        sent.includes(new Webhook(secret).sign(id, at, body)),
      );
    };
    expect(await signers()).toEqual([true, true]);
    await world.later(24 * hourMs);
    expect(await signers()).toEqual([false, true]);
    expect(await secretOf(caller)).toMatchObject({ previousSecret: null, previousExpiresAt: null });
  });
});

describe("whose they are", () => {
  test("another account sees nothing of them, and cannot send them again", async () => {
    receiver.answer = (response) => response.writeHead(204).end();
    const [caller, stranger] = [await world.caller({ credits: 5n }), await world.caller()];
    const path = newPath();
    const job = await submit(caller, "images", image(path));
    await receiver.took(path, 1);
    const id = job.id.replace("job_", "evt_");
    expect(await webhooksOf(stranger)).toEqual([]);
    const theirs = await stranger.post(`/webhooks/${id}/retry`, "");
    const nobodys = await stranger.post("/webhooks/evt_none/retry", "");
    expect(refusalOf(theirs)).toBe("404 not_found_error webhook_not_found null");
    expect(theirs.json).toEqual(nobodys.json);
    expect((await secretOf(stranger)).secret).not.toBe((await secretOf(caller)).secret);
  });

  test("another key of the account sees none of them, nor the account's secret", async () => {
    receiver.answer = (response) => response.writeHead(204).end();
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    const job = await submit(caller, "images", image(path));
    await receiver.took(path, 1);
    const id = job.id.replace("job_", "evt_");
    const delivered = () =>
      until("delivery", async () => {
        const [one] = await webhooksOf(caller);
        return one?.status === "delivered" ? one : undefined;
      });
    const mine = await delivered();
    expect(mine).not.toHaveProperty("keyId");
    const others = [
      // Without scopes: all that are implied.
      await world.withKey(caller, {}),
      await world.withKey(caller, { scopes: [Scope.IMAGES, Scope.BILLING, Scope.KEYS] }),
    ];
    for (const other of others) {
      expect(await webhooksOf(other)).toEqual([]);
      const theirs = await other.post(`/webhooks/${id}/retry`, "");
      expect(refusalOf(theirs)).toBe("404 not_found_error webhook_not_found null");
      expect(theirs.json).toEqual((await other.post("/webhooks/evt_none/retry", "")).json);
    }
    for (const one of [caller, ...others]) {
      for (const asked of [one.get("/webhooks/secret"), one.post("/webhooks/secret/rotate", "")]) {
        expect(refusalOf(await asked)).toBe("403 permission_error permission_denied null");
      }
    }
    const owned = { ...mine, keyId: caller.keyId };
    const reader = await world.withKey(caller, { scopes: [Scope.JOBS_READ_ALL] });
    expect(await webhooksOf(reader)).toEqual([owned]);
    // The key reads the webhooks of other keys. It cannot act on them.
    const read = await reader.post(`/webhooks/${id}/retry`, "");
    expect(refusalOf(read)).toBe("404 not_found_error webhook_not_found null");
    const keeper = await keeperOf(caller);
    expect(await webhooksOf(keeper)).toEqual([owned]);
    expect((await keeper.post(`/webhooks/${id}/retry`, "")).json).toMatchObject({ id });
    await receiver.took(path, 2);
    await delivered();
    expect((await caller.post(`/webhooks/${id}/retry`, "")).status).toBe(200);
    await receiver.took(path, 3);
  });

  test("a retry counts as a request", async () => {
    const caller = await world.caller({ credits: 5n });
    const slow = await world.withKey(caller, { requestsPerMinute: 3 });
    const statuses: number[] = [];
    for (let n = 0; n < 4; n++) {
      statuses.push((await slow.post("/webhooks/evt_none/retry", "")).status);
    }
    expect(statuses).toEqual([404, 404, 404, 429]);
  });

  test("page by page, newest first", async () => {
    const caller = await world.caller({ credits: 5n });
    const path = newPath();
    for (let made = 1; made <= 3; made++) {
      await submit(caller, "images", image(path));
      await receiver.took(path, made);
    }
    const first = (await caller.get("/webhooks?limit=2")).json;
    expect(first).toMatchObject({ object: "list", hasMore: true });
    const second = (await caller.get(`/webhooks?limit=2&cursor=${first.nextCursor}`)).json;
    expect(second).toMatchObject({ hasMore: false, nextCursor: null });
    const ids = [...first.data, ...second.data].map(({ id }) => id);
    expect(ids).toEqual(
      receiver.received
        .filter((one) => one.path === path)
        .map(({ id }) => id)
        .reverse(),
    );
    expect(refusalOf(await caller.get("/webhooks?cursor=x"))).toBe(
      "400 invalid_request_error invalid_value cursor",
    );
  });
});

test("no address that a caller named is in the log", () => {
  expect(
    world.log.filter((line) => line.includes("url-secret") || line.includes(receiver.url)),
  ).toEqual([]);
});
