import { afterAll, describe, expect, test } from "vitest";
import { maxJoiners, repeatWaitMs } from "../../services/text/base/limits.ts";
import { promptly } from "../support/promptly.ts";
import { requestsUnderWay } from "../support/requests-under-way.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const body = { model: "scripted", input: "Hi" };
const messages = [{ role: "user", content: "Hi" }];
const replayed = ({ headers }: { headers: Headers }) => headers.get("idempotency-replayed");
const spent = async (payer: Caller) => {
  const { available, reserved } = await payer.balance();
  expect(reserved).toBe(0);
  return 10_000_000 - available;
};
/** The first request, and those that join it. */
const together = 1 + maxJoiners;
let keys = 0;
const newKey = () => `key-${++keys}`;

describe("equal requests in flight", () => {
  test.for([
    ["/responses", body],
    ["/responses/compact", body],
    ["/chat/completions", { model: "scripted", messages }],
    ["/chat/completions", { model: "legacy", messages }],
  ] as const)(
    "as many of %s as may join are one upstream call and one charge",
    async ([path, asked]) => {
      const payer = await world.caller();
      world.play({ kind: "ok", firstByteDelayMs: 50 });
      const idempotencyKey = newKey();
      const all = Array.from({ length: together }, () =>
        payer.post(path, asked, { idempotencyKey }),
      );
      const answers = await Promise.all(all);
      expect(world.upstream.requests).toHaveLength(1);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(answers.every(({ status }) => status === 200)).toBe(true);
      expect(answers.filter((one) => replayed(one) === "true")).toHaveLength(maxJoiners);
      expect(await spent(payer)).toBe(30);
    },
  );

  test("as many streams too, and each sees it from its beginning", async () => {
    const payer = await world.caller();
    // All have come by then.
    world.play({ kind: "ok", firstByteDelayMs: 1_000, deltaDelayMs: 10 });
    const idempotencyKey = newKey();
    const all = Array.from({ length: together }, () =>
      payer.stream("/responses", body, { idempotencyKey }),
    );
    const answers = await Promise.all(all);
    expect(world.upstream.requests).toHaveLength(1);
    expect(new Set(answers.map((events) => JSON.stringify(events))).size).toBe(1);
    expect(answers[0]?.at(-1)?.data).toBe("[DONE]");
    expect(await spent(payer)).toBe(30);
  });

  test("one that joins late sees it from its beginning as well", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltaDelayMs: 60 });
    const idempotencyKey = newKey();
    const first = await payer.open("/responses", body, { idempotencyKey });
    await first.until(({ name }) => name === "response.output_text.delta");
    const late = await payer.stream("/responses", body, { idempotencyKey });
    expect(late[0]?.name).toBe("response.created");
    expect(late.at(-1)?.data).toBe("[DONE]");
    await first.rest();
    expect(world.upstream.requests).toHaveLength(1);
  });

  test("without a key each is its own", async () => {
    const payer = await world.caller();
    world.play();
    await Promise.all([payer.post("/responses", body), payer.post("/responses", body)]);
    expect(world.upstream.requests).toHaveLength(2);
    expect(await spent(payer)).toBe(60);
  });

  test("upstream is closed when the last caller of a JSON leaves, not before", async () => {
    const payer = await world.caller();
    const seen = world.play({ kind: "hang" });
    const idempotencyKey = newKey();
    const [one, two] = [new AbortController(), new AbortController()];
    const asked = [one, two].map(({ signal }) =>
      payer.post("/responses", body, { idempotencyKey, signal }).catch(() => undefined),
    );
    await until("both", async () => (await requestsUnderWay(world.opsUrl)) === 2);
    await until("the upstream", async () => seen.length === 1);
    one.abort();
    await until("one", async () => (await requestsUnderWay(world.opsUrl)) === 1);
    expect(seen[0]?.aborted).toBe(false);
    await promptly(250, () => {
      two.abort();
      return seen[0]?.over;
    });
    expect(seen[0]?.aborted).toBe(true);
    await Promise.all(asked);
    expect(seen).toHaveLength(1);
  });

  test("an abandoned stream can be asked again, and is another one", async () => {
    const payer = await world.caller();
    const seen = world.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
    const idempotencyKey = newKey();
    const stream = await payer.open("/responses", body, { idempotencyKey });
    await stream.until(({ name }) => name === "response.output_text.delta");
    stream.leave();
    await until("it to be seen", async () => (await requestsUnderWay(world.opsUrl)) === 0);
    await world.later(repeatWaitMs);
    await seen[0]?.over;
    world.upstream.script({ kind: "ok" });
    const again = await payer.post("/responses", body, { idempotencyKey });
    expect(again.status).toBe(200);
    expect(replayed(again)).toBeNull();
    expect(seen).toHaveLength(2);
  });
});

describe("a complete answer", () => {
  test("is given again, and costs nothing", async () => {
    const payer = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    const first = await payer.post("/responses", body, { idempotencyKey });
    expect(replayed(first)).toBeNull();
    const again = await payer.post("/responses", body, { idempotencyKey });
    expect(again.status).toBe(200);
    expect(again.text).toBe(first.text);
    expect(replayed(again)).toBe("true");
    expect(world.upstream.requests).toHaveLength(1);
    expect(await spent(payer)).toBe(30);
  });

  test("is known by what the body means, not by its bytes", async () => {
    const payer = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    const sent = '{"model":"scripted","input":"H\\u0069","temperature":1}';
    const same = '{ "temperature": 1.0, "input": "Hi",\n "model": "scripted" }';
    await payer.post("/responses", sent, { idempotencyKey });
    const again = await payer.post("/responses", same, { idempotencyKey });
    expect(replayed(again)).toBe("true");
  });

  test("comes as a stream where one is asked for, and as JSON after a stream", async () => {
    const payer = await world.caller();
    for (const [path, asked] of [
      ["/responses", body],
      ["/chat/completions", { model: "scripted", messages }],
    ] as const) {
      world.play();
      const [one, two] = [newKey(), newKey()];
      const json = await payer.post(path, asked, { idempotencyKey: one });
      const stream = await payer.open(path, asked, { idempotencyKey: one });
      expect(replayed(stream)).toBe("true");
      const events = await stream.rest();
      expect(events.at(-1)?.data).toBe("[DONE]");
      expect(JSON.stringify(events)).toContain("Hello");
      const numbers = events.slice(0, -1).map(({ json: event }) => event.sequence_number);
      if (path === "/responses") {
        expect(numbers).toEqual([...numbers.keys()]);
        expect(events.at(-2)?.json.response).toEqual(json.json);
      }
      await payer.stream(path, asked, { idempotencyKey: two });
      const whole = await payer.post(path, asked, { idempotencyKey: two });
      expect(replayed(whole)).toBe("true");
      expect(whole.text).toContain("Hello from upstream.");
      expect(world.upstream.requests).toHaveLength(2);
    }
    expect(await spent(payer)).toBe(120);
  });

  test("comes although rate, funds or model have changed in between", async () => {
    const payer = await world.caller({ usdMicros: 5_000n });
    const slow = await world.withKey(payer, { requestsPerMinute: 1 });
    const usage = { input_tokens: 1_000, output_tokens: 500, total_tokens: 1_500 };
    world.play({ kind: "ok", usage });
    const idempotencyKey = newKey();
    const first = await slow.post("/responses", body, { idempotencyKey });
    expect(first.status).toBe(200);
    expect((await slow.post("/responses", body)).status).toBe(429);
    expect((await payer.post("/responses", body)).status).toBe(402);
    expect((await slow.post("/responses", body, { idempotencyKey })).text).toBe(first.text);
    await world.writeCatalog((usual) => ({
      ...usual,
      models: [...usual.models.filter(({ id }) => id !== "scripted"), chat("other")],
    }));
    const isGone = async () => (await payer.get("/models/scripted")).status === 400;
    await until("the model to go", isGone);
    const again = await slow.post("/responses", body, { idempotencyKey });
    expect([again.status, replayed(again)]).toEqual([200, "true"]);
    await world.writeCatalog((usual) => usual);
    await until("the model to come back", async () => !(await isGone()));
  });

  test("is kept for 24 hours", async () => {
    const payer = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    await payer.post("/responses", body, { idempotencyKey });
    await world.later(23.9 * 3_600_000);
    expect(replayed(await payer.post("/responses", body, { idempotencyKey }))).toBe("true");
    await world.later(0.2 * 3_600_000);
    expect(replayed(await payer.post("/responses", body, { idempotencyKey }))).toBeNull();
    expect(world.upstream.requests).toHaveLength(2);
  });
});

describe("a key", () => {
  test("with another body is 422, and nothing to retry", async () => {
    const payer = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    await payer.post("/responses", body, { idempotencyKey });
    for (const other of [
      { ...body, input: "Ho" },
      { ...body, temperature: 0 },
      { ...body, model: "plain" },
    ]) {
      const asked = await payer.post("/responses", other, { idempotencyKey });
      expect(refusalOf(asked)).toBe("422 idempotency_error idempotency_key_reused null");
      expect(asked.headers.get("x-should-retry")).toBe("false");
    }
    expect(world.upstream.requests).toHaveLength(1);
  });

  test("with another body is 422 while the first is in flight, too", async () => {
    const payer = await world.caller();
    const seen = world.play({ kind: "hang" });
    const idempotencyKey = newKey();
    const leaving = new AbortController();
    const first = payer
      .post("/responses", body, { idempotencyKey, signal: leaving.signal })
      .catch(() => {});
    await world.upstream.request(1);
    const asked = await payer.post("/responses", { ...body, input: "Ho" }, { idempotencyKey });
    expect(asked.status).toBe(422);
    leaving.abort();
    await first;
    await seen[0]?.over;
  });

  test("is its key id's and its route's: elsewhere it is another one", async () => {
    const payer = await world.caller();
    const colleague = await world.withKey(payer, {});
    const stranger = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    const asked = [
      await payer.post("/responses", body, { idempotencyKey }),
      await payer.post("/responses/compact", body, { idempotencyKey }),
      await colleague.post("/responses", body, { idempotencyKey }),
      await stranger.post("/responses", body, { idempotencyKey }),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(asked.map(replayed)).toEqual([null, null, null, null]);
    expect(world.upstream.requests).toHaveLength(4);
  });

  test("goes on after a rotation, for the key id stays", async () => {
    const payer = await world.caller();
    world.play();
    const idempotencyKey = newKey();
    await payer.post("/responses", body, { idempotencyKey });
    const { secret } = await world.admin.auth.rotateKey({ keyId: payer.keyId });
    const renewed = world.holding(secret);
    const again = await renewed.post("/responses", body, { idempotencyKey });
    expect(replayed(again)).toBe("true");
  });

  test.for([
    ["upstream's 500", { kind: "status", status: 500 }],
    ["upstream's 400", { kind: "status", status: 400 }],
    ["a stream that broke", { kind: "ok", usage: null, break: { how: "destroy", after: 1 } }],
  ] as const)("is free again after %s", async ([, behaviour]) => {
    const payer = await world.caller();
    const seen = world.play(behaviour);
    const idempotencyKey = newKey();
    const failed = await payer.post("/responses", { ...body, stream: true }, { idempotencyKey });
    expect(failed.text).toMatch(/"error"/);
    world.upstream.script({ kind: "ok" });
    const again = await payer.post("/responses", body, { idempotencyKey });
    expect([again.status, replayed(again)]).toEqual([200, null]);
    expect(seen).toHaveLength(2);
  });

  test("is free again after a refusal, for any body", async () => {
    const payer = await world.caller({ usdMicros: 5n });
    world.play();
    const idempotencyKey = newKey();
    const refused = async (asked: object) =>
      (await payer.post("/responses", asked, { idempotencyKey })).status;
    expect(await refused({ ...body, max_output_tokens: 0 })).toBe(400);
    expect(await refused({ ...body, model: "none" })).toBe(400);
    expect(await refused(body)).toBe(402);
    const scoped = await world.withKey(payer, { scopes: [], allowedModels: ["plain"] });
    const denied = await scoped.post("/responses", body, { idempotencyKey });
    expect(refusalOf(denied)).toBe("403 permission_error permission_denied model");
    expect(await refused({ ...body, input: "Ho" })).toBe(402);
  });

  test("has 1 to 255 characters", async () => {
    const payer = await world.caller();
    world.play();
    for (const idempotencyKey of ["", "k".repeat(256)]) {
      for (const path of ["/responses", "/responses/compact", "/chat/completions"]) {
        const asked = await payer.post(path, { ...body, messages }, { idempotencyKey });
        expect(refusalOf(asked)).toBe(
          "400 invalid_request_error invalid_idempotency_key Idempotency-Key",
        );
      }
    }
    const idempotencyKey = "k".repeat(255);
    expect((await payer.post("/responses", body, { idempotencyKey })).status).toBe(200);
    expect(replayed(await payer.post("/responses", body, { idempotencyKey }))).toBe("true");
  });
});
