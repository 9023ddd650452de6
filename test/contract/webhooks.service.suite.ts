import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { Webhook_State } from "#proto/genmesh/media/v1/media_service_pb.ts";
import {
  announceBatch,
  attemptLeaseMs,
  attemptTimeoutMs,
  bodyKeptMs,
  maxAttemptsToHost,
  maxFreeWebhooks,
} from "../../services/media/webhooks/limits.ts";
import type { WebhookStore } from "../../services/media/webhooks/store.ts";
import { newWebhook } from "../../services/media/webhooks/webhook.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { worldsOf } from "./jobs.opening.ts";
import { jobOf } from "./jobs.shapes.ts";
import { fail, scriptedUpstream, succeed } from "./jobs.upstream.ts";
import {
  alice,
  alicesOther,
  as,
  bob,
  type createJobsWorld,
  image,
  type JobsWorld,
} from "./jobs.world.ts";

/** Media's rules for webhooks, on any database. */
export function webhookServiceContract(createWorld: typeof createJobsWorld): void {
  const open = worldsOf(createWorld);
  let receiver: WebhookReceiver;
  beforeEach(async () => {
    receiver = await startWebhookReceiver();
  });
  afterEach(() => receiver[Symbol.asyncDispose]());
  const hooked = () => image({ webhookUrl: `${receiver.url}/hook` });
  const deliveredOf = async ({ peers }: JobsWorld, allKeys = false) => {
    const { webhooks } = await peers.media.listWebhooks({ pageSize: 100, allKeys }, as(alice));
    return webhooks.filter(({ state }) => state === Webhook_State.DELIVERED);
  };

  test("two replicas send each event once", async () => {
    const folder = await mkdtemp(join(tmpdir(), "genmesh-webhooks-"));
    try {
      const one = await createWorld({ folder, upstream: scriptedUpstream() });
      const two = await createWorld({ folder, upstream: scriptedUpstream() });
      try {
        await one.fund(100n);
        const made = await Promise.all(
          Array.from({ length: 12 }, (_, i) => (i % 2 ? one : two).submit(hooked())),
        );
        await until("all of them", async () => (await deliveredOf(two)).length === made.length, {
          withinMs: 60_000,
        });
        const told = receiver.received.map(({ id }) => id).sort();
        expect(told).toEqual(made.map(({ job }) => job.jobId.replace("job_", "evt_")).sort());
        const page = await one.admin.media.listAccountWebhooks({ accountId: alice.accountId });
        expect(page.webhooks).toHaveLength(12);
        const none = await one.admin.media.listAccountWebhooks({ accountId: bob.accountId });
        expect(none.webhooks).toEqual([]);
      } finally {
        await two[Symbol.asyncDispose]();
        await one[Symbol.asyncDispose]();
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("an attempt whose process is gone is made again, with the same id", async () => {
    const world = await open();
    receiver.answer = () => {};
    await world.submit(hooked());
    await receiver.took("/hook", 1);
    receiver.answer = (response) => response.writeHead(200).end();
    world.clock.jump(attemptLeaseMs);
    const [first, second] = await receiver.took("/hook", 2);
    expect(second?.id).toBe(first?.id);
    await until("delivery", async () => (await deliveredOf(world)).length === 1);
  });

  test("jobs that are cancelled and deleted at once are told of all the same", async () => {
    const world = await open({ workerCount: 0 });
    const jobIds: string[] = [];
    for (let n = 0; n < 5; n++) {
      const { job } = await world.submit(hooked());
      await world.cancel(job.jobId);
      await world.peers.media.deleteJob({ jobId: job.jobId }, as(alice));
      jobIds.push(job.jobId);
    }
    const came = await receiver.took("/hook", jobIds.length);
    const told = came.map(({ body }) => JSON.parse(body));
    expect(told.map(({ type }) => type)).toEqual(jobIds.map(() => "job.cancelled"));
    expect(told.map(({ data }) => data.id).sort()).toEqual(jobIds.sort());
  });

  test("a key lists and sends again its own; those of its account where that is asked for", async () => {
    const world = await open();
    const { media } = world.peers;
    const { job } = await world.submit(hooked());
    await world.submit(hooked(), { principal: alicesOther });
    await receiver.took("/hook", 2);
    await until("both", async () => (await deliveredOf(world, true)).length === 2);
    const [mine] = await deliveredOf(world);
    expect(mine).toMatchObject({ jobId: job.jobId, keyId: alice.keyId });
    expect(await deliveredOf(world)).toHaveLength(1);
    const webhookId = mine?.webhookId ?? "";
    const byOther = (allKeys: boolean) =>
      media.retryWebhook({ webhookId, allKeys }, as(alicesOther));
    await expect(byOther(false)).rejects.toMatchObject({ reason: ErrorReason.WEBHOOK_NOT_FOUND });
    expect((await byOther(true)).webhook).toMatchObject({ webhookId });
    await receiver.took("/hook", 3);
    await expect(media.retryWebhook({ webhookId, allKeys: true }, as(bob))).rejects.toMatchObject({
      reason: ErrorReason.WEBHOOK_NOT_FOUND,
    });
  });

  test("a host without room costs other accounts nothing, nor the account's other hosts, and is shared", {
    timeout: 240_000,
  }, async () => {
    const hanging = await startWebhookReceiver();
    const folder = await mkdtemp(join(tmpdir(), "genmesh-webhooks-"));
    const held: ServerResponse[] = [];
    hanging.answer = (response) => void held.push(response);
    const before = await createWorld({ folder, withApi: false, workerCount: 0 });
    const at = before.clock.now();
    const insert = (to: WebhookStore, account: string, n: number, url: string, dueAt = at) =>
      to.insert(
        newWebhook(
          {
            webhookId: `evt_${account}${String(n).padStart(20, "0")}`,
            ...{ accountId: `acct_${account}`, jobId: "job_a", type: "job.cancelled" },
            ...{ url, body: JSON.stringify({ account }) },
          },
          dueAt,
        ),
      );
    const accountsAt = ({ received }: WebhookReceiver) =>
      received.map(({ body }) => JSON.parse(body).account);
    await before.webhooks.open();
    // Two accounts take all places of the host. A third account's backlog for it is due a little later, but before their first attempts
    // time out.
    const laterMs = attemptTimeoutMs;
    for (let n = 0; n < 3_000; n += 250) {
      const ns = Array.from({ length: 250 }, (_, i) => n + i);
      const dueAt = at + 600_000;
      await Promise.all(ns.map((one) => insert(before.webhooks, "yy", one, hanging.url, dueAt)));
    }
    for (const account of ["x", "y"]) {
      const ns = Array.from({ length: 30 }, (_, n) => n);
      const dueAt = at + 500_000;
      await Promise.all(ns.map((n) => insert(before.webhooks, account, n, hanging.url, dueAt)));
    }
    await before[Symbol.asyncDispose]();
    const clock = jumpClock();
    const world = await createWorld({ folder, clock, workerCount: 0 });
    try {
      // Just before the time of the backlog, and only now that the world works. It has the rest of that time to fill the host.
      clock.jump(at + 600_000 - clock.now() - laterMs);
      await until("the host to be full", () => held.length === maxAttemptsToHost - 1);
      clock.jump(laterMs);
      await until("the place that two accounts leave", () => held.length === maxAttemptsToHost);
      expect(accountsAt(hanging).filter((one) => one === "yy")).toHaveLength(1);
      const names = ["a", "yy", "z"];
      await Promise.all(
        names.map((one) => insert(world.webhooks, one, 9_999, `${receiver.url}/${one}`)),
      );
      await until("the others", () => receiver.received.length === 3, { withinMs: 60_000 });
      expect(accountsAt(receiver).sort()).toEqual(names);
      // Freed places do not go to the accounts that had them all.
      for (const response of held.splice(0)) response.writeHead(204).end();
      await until(
        "the third account's turn",
        () => accountsAt(hanging).filter((one) => one === "yy").length > 1,
      );
      for (const response of held) response.destroy();
    } finally {
      await hanging[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    }
  });

  test("a backlog of jobs that are to be told of does not hold up what is due", {
    timeout: 240_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "genmesh-webhooks-"));
    try {
      // Left by processes that have ended.
      const before = await createWorld({ folder, withApi: false, workerCount: 0 });
      await Promise.all([before.store.open(), before.webhooks.open()]);
      const at = before.clock.now();
      const webhook = { url: `${receiver.url}/hook`, baseUrl: "", isAnnounced: false };
      const ended = { state: "failed", completedAt: at, expiresAt: at + 86_400_000 } as const;
      const jobs = 3 * announceBatch;
      const ids = Array.from({ length: jobs }, (_, n) => `job_${String(n).padStart(24, "0")}`);
      await Promise.all(
        ids.map((jobId) => before.store.insert({ ...jobOf(jobId, { webhook }), ...ended })),
      );
      const due = { webhookId: `evt_${"b".repeat(24)}`, accountId: bob.accountId, jobId: "job_b" };
      const url = `${receiver.url}/due`;
      await before.webhooks.insert(
        newWebhook({ ...due, type: "job.cancelled", url, body: "{}" }, at),
      );
      await before[Symbol.asyncDispose]();
      const world = await createWorld({ folder, workerCount: 0 });
      try {
        await receiver.took("/due", 1);
        const sentAt = (await world.webhooks.find(due.webhookId))?.lastAttemptAt ?? Infinity;
        await until(
          "all to be told of",
          async () => (await world.store.unannounced(1)).length === 0,
          {
            withinMs: 60_000,
          },
        );
        const [last] = await world.webhooks.list({
          accountId: "acct_a",
          after: undefined,
          limit: 1,
        });
        expect(last?.createdAt).toBeGreaterThan(sentAt);
      } finally {
        await world[Symbol.asyncDispose]();
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a job that an operator repeats is told of at the same address", async () => {
    const upstream = scriptedUpstream();
    const world = await open({ upstream });
    upstream.behave(fail("failed"));
    const { job } = await world.submit(hooked());
    await receiver.took("/hook", 1);
    upstream.behave(succeed);
    const again = await world.admin.media.retryJob({ jobId: job.jobId, operationId: "op" });
    const came = await receiver.took("/hook", 2);
    expect(came.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: "job.failed", data: { id: job.jobId } },
      { type: "job.completed", data: { id: again.job?.jobId, retryOf: job.jobId } },
    ]);
  });

  test("of what costs nothing an account's newest are kept; what it paid for stays", async () => {
    const world = await open({ workerCount: 0 });
    const at = world.clock.now();
    await world.webhooks.open();
    const event = {
      accountId: alice.accountId,
      keyId: alice.keyId,
      url: `${receiver.url}/x`,
      body: "{}",
    };
    const insert = (n: number, type: "job.cancelled" | "job.completed") => {
      const webhookId = `evt_${type.at(4)}${type.at(5)}${String(n).padStart(22, "0")}`;
      const made = newWebhook({ ...event, webhookId, jobId: "job_a", type }, at - 1_000_000 + n);
      return world.webhooks.insert({ ...made, state: "failed", dueAt: undefined });
    };
    for (let n = 0; n < maxFreeWebhooks; n += 500) {
      const ns = Array.from({ length: 500 }, (_, i) => n + i);
      await Promise.all(
        ns.flatMap((i) => [insert(i, "job.cancelled"), insert(i, "job.completed")]),
      );
    }
    const { job } = await world.submit(hooked());
    await world.cancel(job.jobId);
    await until("its webhook", () => world.webhooks.find(job.jobId.replace("job_", "evt_")));
    await until(
      "the oldest to go",
      async () => !(await world.webhooks.find(`evt_ca${"0".repeat(22)}`)),
    );
    expect(await world.webhooks.find(`evt_ca${"1".padStart(22, "0")}`)).toBeDefined();
    expect(await world.webhooks.find(`evt_co${"0".repeat(22)}`)).toBeDefined();
  });

  test("one whose body is kept no more is sent again from its job, and not once that is gone", async () => {
    const world = await open();
    const { job } = await world.submit(hooked());
    await receiver.took("/hook", 1);
    await until("delivery", async () => (await deliveredOf(world)).length === 1);
    const webhookId = job.jobId.replace("job_", "evt_");
    const { media } = world.peers;
    const forgetBody = () => world.webhooks.clear(world.clock.now() + bodyKeptMs, 9);
    await forgetBody();
    expect((await world.webhooks.find(webhookId))?.body).toBe("");
    await media.retryWebhook({ webhookId }, as(alice));
    const [first, again] = await receiver.took("/hook", 2);
    expect(again).toMatchObject({ id: webhookId, body: first?.body });
    await until("delivery", async () => (await deliveredOf(world)).length === 1);
    await media.deleteJob({ jobId: job.jobId }, as(alice));
    // Until then a retry needs no job.
    await media.retryWebhook({ webhookId }, as(alice));
    await receiver.took("/hook", 3);
    await until("delivery", async () => (await deliveredOf(world)).length === 1);
    await forgetBody();
    await expect(media.retryWebhook({ webhookId }, as(alice))).rejects.toMatchObject({
      reason: ErrorReason.WEBHOOK_NOT_FOUND,
    });
    expect(await deliveredOf(world)).toHaveLength(1);
  });

  test("an operator sends one again; what is not there is refused", async () => {
    const world = await open();
    const { job } = await world.submit(hooked());
    await receiver.took("/hook", 1);
    await until("delivery", async () => (await deliveredOf(world)).length === 1);
    const webhookId = job.jobId.replace("job_", "evt_");
    const { webhook, accountId } = await world.admin.media.retryAccountWebhook({ webhookId });
    expect(accountId).toBe(alice.accountId);
    expect(webhook).toMatchObject({ webhookId, state: Webhook_State.PENDING, attempts: 1 });
    await receiver.took("/hook", 2);
    const refused = { reason: ErrorReason.WEBHOOK_NOT_FOUND };
    const { media } = world.peers;
    await expect(media.retryWebhook({ webhookId }, as(bob))).rejects.toMatchObject(refused);
    const theirs = media.retryWebhook({ webhookId }, as(alicesOther));
    await expect(theirs).rejects.toMatchObject(refused);
    const unknown = world.admin.media.retryAccountWebhook({ webhookId: "evt_none" });
    await expect(unknown).rejects.toMatchObject(refused);
    await expect(media.retryAccountWebhook({ webhookId })).rejects.toMatchObject({
      reason: ErrorReason.CALLER_FORBIDDEN,
    });
  });
}
