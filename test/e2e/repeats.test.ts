import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, describe, expect, test } from "vitest";
import { repeatWaitMs } from "../../services/text/base/limits.ts";
import { requestsUnderWay } from "../support/requests-under-way.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

ownWorldOnly();
const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());

const responses = { model: "scripted", input: "Hi" };
const chat = { model: "scripted", messages: [{ role: "user", content: "Hi" }] };
const cost = 30;
let keys = 0;
const newKey = () => `repeat-${++keys}`;

/** An upstream that has said its first delta, and the rest when the test wants it. */
function holdingBack() {
  const held = Promise.withResolvers<void>();
  const seen = world.play({ kind: "ok", restAfter: held.promise });
  return { seen, goOn: () => held.resolve() };
}

/** Opens a stream, reads up to a text, and loses the connection on the way. Resolves once no gateway has a request. */
async function loseStream(
  caller: Caller,
  path: string,
  body: object,
  key: string,
  baseUrl = caller.baseUrl,
): Promise<string> {
  const asking = httpRequest(`${baseUrl}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${caller.key}`,
      "content-type": "application/json",
      "idempotency-key": key,
    },
  });
  asking.on("error", () => {});
  asking.end(JSON.stringify({ ...body, stream: true }));
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  let heard = "";
  for await (const bytes of answer) {
    heard += bytes;
    if (heard.includes("Hello")) break;
  }
  asking.socket?.resetAndDestroy();
  await until("every gateway to see it", async () => {
    const counts = await Promise.all(world.opsUrls.map((url) => requestsUnderWay(url)));
    return counts.every((count) => !(count > 0));
  });
  return heard;
}

const typed = (events: readonly SseEvent[]) =>
  events.flatMap(({ data }) => (data?.startsWith("{") ? [JSON.parse(data)] : []));
const spent = async (caller: Caller) => 10_000_000 - (await caller.settled()).available;

describe("a stream that breaks off on the way", () => {
  test.for([
    ["/responses", responses],
    ["/chat/completions", chat],
  ] as const)("goes on, and its repeat has it from its first event: %s", async ([path, body]) => {
    const caller = await world.caller();
    const { seen, goOn } = holdingBack();
    const idempotencyKey = newKey();
    const lost = await loseStream(caller, path, body, idempotencyKey);
    expect(seen[0]?.aborted).toBe(false);
    const again = await caller.open(path, body, { idempotencyKey });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const first = await again.next();
    expect(lost).toContain(first?.data);
    goOn();
    const events = [first, ...(await again.rest())];
    expect(events.at(-1)?.data).toBe("[DONE]");
    const text = events.map((event) => event?.data).join("");
    for (const word of ["Hello", " from", " upstream"]) expect(text).toContain(word);
    expect(seen).toHaveLength(1);
    expect(await spent(caller)).toBe(cost);
  });

  test("goes on behind `starting_after`", async () => {
    const caller = await world.caller();
    const { seen, goOn } = holdingBack();
    const idempotencyKey = newKey();
    const lost = await loseStream(caller, "/responses", responses, idempotencyKey);
    const numbers = [...lost.matchAll(/"sequence_number":(\d+)/g)].map(([, n]) => Number(n));
    const last = numbers.at(-1) ?? 0;
    expect(numbers).toEqual(Array.from({ length: last + 1 }, (_, n) => n));
    const body = { ...responses, starting_after: last };
    const again = caller.stream("/responses", body, { idempotencyKey });
    goOn();
    const behind = typed(await again);
    expect(behind.map(({ sequence_number: n }) => n)).toEqual(behind.map((_, n) => last + 1 + n));
    expect(behind.at(-1)).toMatchObject({
      type: "response.completed",
      response: { output: [{ content: [{ text: "Hello from upstream." }] }] },
    });
    expect(seen).toHaveLength(1);
    expect(await spent(caller)).toBe(cost);
  });

  test("is there for its repeat when it has ended meanwhile, and later from the kept answer", async () => {
    const caller = await world.caller();
    const { seen, goOn } = holdingBack();
    const idempotencyKey = newKey();
    await loseStream(caller, "/responses", responses, idempotencyKey);
    goOn();
    expect(await spent(caller)).toBe(cost);
    const body = { ...responses, starting_after: 3 };
    const behind = typed(await caller.stream("/responses", body, { idempotencyKey }));
    expect(behind[0]?.sequence_number).toBe(4);
    expect(behind.at(-1)?.type).toBe("response.completed");
    const late = await caller.post("/responses", { ...body, stream: true }, { idempotencyKey });
    expect(refusalOf(late)).toBe("400 invalid_request_error invalid_value starting_after");
    const whole = typed(await caller.stream("/responses", responses, { idempotencyKey }));
    expect(whole.at(-1)?.type).toBe("response.completed");
    expect(seen).toHaveLength(1);
    expect(await spent(caller)).toBe(cost);
  });

  test("ends at its upstream where no repeat comes in time, and its key is free", async () => {
    const caller = await world.caller();
    const { seen } = holdingBack();
    const idempotencyKey = newKey();
    await loseStream(caller, "/responses", responses, idempotencyKey);
    await world.later(repeatWaitMs);
    await seen[0]?.over;
    expect(seen[0]?.aborted).toBe(true);
    const left = await spent(caller);
    expect(left).toBeGreaterThan(0);
    world.upstream.script({ kind: "ok" });
    const again = await caller.open("/responses", responses, { idempotencyKey });
    expect(again.headers.get("idempotency-replayed")).toBeNull();
    await again.rest();
    expect(await spent(caller)).toBe(left + cost);
  });

  test("is found through any gateway", async () => {
    const caller = await world.caller();
    const { seen, goOn } = holdingBack();
    const idempotencyKey = newKey();
    for (const baseUrl of [...world.baseUrls, ...world.baseUrls]) {
      await loseStream(caller, "/responses", responses, idempotencyKey, baseUrl);
    }
    const again = caller.stream("/responses", responses, { idempotencyKey });
    goOn();
    expect(typed(await again).at(-1)?.type).toBe("response.completed");
    expect(seen).toHaveLength(1);
    expect(await spent(caller)).toBe(cost);
  });
});

test.for([
  ["without a key", { stream: true, starting_after: 0 }, undefined, "invalid_value"],
  ["of a JSON", { starting_after: 0 }, "k", "invalid_value"],
  ["of a stream that never was", { stream: true, starting_after: 0 }, "k", "invalid_value"],
  ["below 0", { stream: true, starting_after: -1 }, "k", "invalid_value"],
  ["as a text", { stream: true, starting_after: "1" }, "k", "invalid_type"],
] as const)("`starting_after` %s is refused, and nothing is asked", async ([, more, key, code]) => {
  const caller = await world.caller();
  const seen = world.play();
  const options = key === undefined ? {} : { idempotencyKey: key };
  const answer = await caller.post("/responses", { ...responses, ...more }, options);
  expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} starting_after`);
  expect(seen).toEqual([]);
  expect(await spent(caller)).toBe(0);
});
