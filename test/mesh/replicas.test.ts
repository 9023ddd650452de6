import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { againWhereBusy } from "../support/again.ts";
import { promptly } from "../support/promptly.ts";
import { until } from "../support/until.ts";
import { type Answer, ask, imageOf, type Question, textOf } from "./ask.ts";
import { imagePrice } from "./catalog.ts";
import { faultsUnderLoad } from "./faults.suite.ts";
import { describeMesh } from "./servers.ts";
import { followedJobs } from "./watch.suite.ts";
import { type MeshCaller, type MeshWorld, startMeshWorld } from "./world.ts";

/**
 * Repeats a check until it is right. Answers the beginning of the last look that found it wrong, so that the length of a look does not
 * count.
 */
async function lastWrongMs(what: string, isRight: () => Promise<boolean>): Promise<number> {
  let wrongMs = performance.now();
  await until(
    what,
    async () => {
      const beganMs = performance.now();
      if (await isRight()) return true;
      wrongMs = beganMs;
      return false;
    },
    { everyMs: 50 },
  );
  return wrongMs;
}

const byItself = (wrongMs: number) => wrongMs;

const submitted = (gateway: string, question: Question): Promise<Answer> =>
  againWhereBusy(() => ask(gateway, question));

/** Clocks of some processes, for all tests of this file. */
const clocksAheadMs = { "media-2": 120_000, "billing-1": -120_000 };

await describeMesh("two of each role and three workers", () => {
  let world: MeshWorld;
  beforeAll(async () => {
    const started = await startMeshWorld({ replicas: "2,media-worker=3", clocksAheadMs });
    if (!started) throw new Error("there is no server for one of the stores");
    world = started;
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const gatewayOf = (n: number) => world.gateways[n % world.gateways.length] ?? "";
  const countsOf = (answers: readonly Answer[]) =>
    Object.fromEntries(
      [...Map.groupBy(answers, ({ status }) => status)].map(([key, list]) => [key, list.length]),
    );
  const creditsOf = async ({ accountId }: MeshCaller) => {
    const { credits } = await world.operator.billing.getBalance({ accountId });
    return { reserved: credits?.reserved, spent: credits?.spent, spendable: credits?.spendable };
  };
  const allEnded = (caller: MeshCaller, count: number) =>
    until(
      `the end of ${count} jobs`,
      async () => {
        const path = "/jobs?limit=100&status=completed";
        const { json } = await ask(gatewayOf(1), { caller, path });
        return json?.data?.length === count;
      },
      { withinMs: 90_000, everyMs: 500 },
    );

  test("a wallet for 20 jobs takes 20 of 200 at once, and each is generated once", {
    timeout: 240_000,
  }, async () => {
    const caller = await world.caller({ credits: 20n * imagePrice });
    const begun = world.media.seen("POST /images/generations").length;
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        submitted(gatewayOf(n), { caller, ...imageOf(`race ${n}`), idempotencyKey: `race ${n}` }),
      ),
    );
    expect(countsOf(answers)).toEqual({ 202: 20, 402: 180 });
    await allEnded(caller, 20);
    const all = 20n * imagePrice;
    expect(await creditsOf(caller)).toEqual({ reserved: 0n, spent: all, spendable: 0n });
    const generations = world.media.seen("POST /images/generations").slice(begun);
    const keys = generations.map(({ headers }) => headers["idempotency-key"]);
    const jobs = answers.filter(({ status }) => status === 202).map(({ json }) => json.id);
    expect(keys.sort()).toEqual(jobs.sort());
  });

  test("50 at once with one idempotency key are one job, one hold and one generation", {
    timeout: 240_000,
  }, async () => {
    const caller = await world.caller({ credits: 100n });
    const begun = world.media.seen("POST /images/generations").length;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        submitted(gatewayOf(n), { caller, ...imageOf("the same"), idempotencyKey: "one" }),
      ),
    );
    expect(countsOf(answers)).toEqual({ 202: 50 });
    const ids = new Set(answers.map(({ json }) => json.id));
    expect(ids.size).toBe(1);
    const replayed = answers.filter(({ headers }) => headers.get("idempotency-replayed"));
    expect(replayed.length).toBeGreaterThanOrEqual(49);
    await allEnded(caller, 1);
    const { entries } = await world.operator.billing.listEntries({ accountId: caller.accountId });
    expect(entries.filter(({ holdId }) => ids.has(holdId))).toHaveLength(2);
    expect(entries.filter(({ spentDelta }) => spentDelta > 0n)).toHaveLength(1);
    expect(world.media.seen("POST /images/generations").length - begun).toBe(1);
  });

  test("a text request with one key at both gateways goes upstream once, and is charged once", async () => {
    const caller = await world.caller({ usdMicros: 1_000_000n });
    const before = world.text.requests.length;
    world.text.script({ kind: "ok", firstByteDelayMs: 300 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        ask(gatewayOf(n), { caller, ...textOf("the same"), idempotencyKey: "one" }),
      ),
    );
    expect(countsOf(answers)).toEqual({ 200: 20 });
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(1);
    expect(world.text.requests.length - before).toBe(1);
    const { entries } = await world.operator.billing.listEntries({ accountId: caller.accountId });
    expect(entries.filter(({ spentDelta }) => spentDelta > 0n)).toHaveLength(1);
  });

  test("a job's events are read at the other gateway", async () => {
    const caller = await world.caller({ credits: 100n });
    const { json } = await ask(gatewayOf(0), { caller, ...imageOf("watched") });
    const events = await ask(gatewayOf(1), { caller, path: `/jobs/${json.id}/events` });
    const names = [...events.text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name);
    expect(names.at(-1)).toBe("job.completed");
  });

  test("a revoked key is refused by both gateways within a second", async () => {
    const { accountId } = await world.caller({});
    const caller = await world.keyOf(accountId);
    const statuses = () =>
      Promise.all(
        world.gateways.map(async (gateway) => {
          return (await ask(gateway, { caller, path: "/models" })).status;
        }),
      );
    // Both gateways have the key cached.
    expect(await statuses()).toEqual([200, 200]);
    expect(await statuses()).toEqual([200, 200]);
    await world.operator.auth.revokeKey({ keyId: caller.keyId });
    const isRefused = async () => (await statuses()).every((one) => one === 401);
    await promptly(1_000, () => lastWrongMs("the refusals", isRefused), byItself);
  });

  test("a change of the catalog file is in force behind both gateways within 2 s", async () => {
    const caller = await world.caller({ usdMicros: 10_000_000n });
    const lists = () =>
      Promise.all(
        world.gateways.map(async (gateway) => {
          const { json } = await ask(gateway, { caller, path: "/models" });
          return json.data.some(({ id }: { id: string }) => id === "new-model");
        }),
      );
    expect(await lists()).toEqual([false, false]);
    await world.writeCatalog(["new-model"]);
    // Each request may go to any replica of text.
    const isInForce = async () => {
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          ask(gatewayOf(n), { caller, ...textOf("hello", { model: "new-model" }) }),
        ),
      );
      return answers.every(({ status }) => status === 200) && (await lists()).every(Boolean);
    };
    await promptly(2_000, () => lastWrongMs("the new model everywhere", isInForce), byItself);
    await world.writeCatalog([]);
    await until("its end", async () => !(await lists()).some(Boolean));
  });

  test("two gateways admit a key's rate together", async () => {
    const { accountId } = await world.caller({});
    const caller = await world.keyOf(accountId, { requestsPerMinute: 10 });
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => ask(gatewayOf(n), { caller, path: "/models" })),
    );
    const admitted = answers.filter(({ status }) => status === 200).length;
    expect(admitted).toBeGreaterThanOrEqual(10);
    // Requests that become free in these seconds: one every six.
    expect(admitted).toBeLessThanOrEqual(12);
    expect(countsOf(answers)).toEqual({ 200: admitted, 429: 60 - admitted });
  });

  test("a gateway that stood still for longer than keys count asks auth, and refuses no caller", {
    timeout: 240_000,
  }, async () => {
    const caller = await world.caller({});
    const [gateway] = world.of("gateway");
    const url = gatewayOf(0);
    expect((await ask(url, { caller, path: "/models" })).status).toBe(200);
    gateway?.pause();
    // Meanwhile callers' requests wait in its sockets, and are read together with auth's messages.
    await delay(6_000);
    const asked = Array.from({ length: 10 }, () => ask(url, { caller, path: "/models" }));
    await delay(100);
    gateway?.resume();
    asked.push(...Array.from({ length: 10 }, () => ask(url, { caller, path: "/models" })));
    expect(countsOf(await Promise.all(asked))).toEqual({ 200: 20 });
    await until("auth to be heard", async () => (await gateway?.probe("readyz")) === "200 ready");
  });

  test("without auth no cached key is honoured after 5 s, and all are again soon after it is back", {
    timeout: 240_000,
  }, async () => {
    const caller = await world.caller({});
    const statuses = () =>
      Promise.all(
        world.gateways.map(async (gateway) => {
          const { status, headers } = await ask(gateway, { caller, path: "/models" });
          return `${status} ${headers.get("retry-after") ?? ""}`.trim();
        }),
      );
    expect(await statuses()).toEqual(["200", "200"]);
    const auths = world.of("auth");
    await Promise.all(auths.map((one) => one.kill()));
    try {
      // A new key is not cached everywhere, and is refused at once. So the test checks the probes too.
      const isUnheard = async () => {
        const probes = world.of("gateway").map((gateway) => gateway.probe("readyz"));
        const refused = (await statuses()).every((one) => one === "503 1");
        return refused && (await Promise.all(probes)).every((said) => said.startsWith("503 auth"));
      };
      await promptly(6_000, () => lastWrongMs("the refusals", isUnheard), byItself);
      for (const gateway of world.of("gateway")) {
        expect(await gateway.probe("healthz")).toBe("200 ok");
      }
    } finally {
      await Promise.all(auths.map((one) => one.start()));
    }
    await until(
      "the keys to count again",
      async () => (await statuses()).every((one) => one === "200"),
      { withinMs: 60_000 },
    );
  });

  describe("a caller who follows a job", () => followedJobs(() => world));

  describe("under load", () => faultsUnderLoad(() => world));
});
