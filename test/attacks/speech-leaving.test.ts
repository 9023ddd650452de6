import { afterAll, beforeEach, expect, test } from "vitest";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";

ownWorldOnly();
const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());

const path = "/speech/generations";
const upstream = "POST /audio/speech";
/** 2.5 micros a character. */
const speech = { model: "scripted-speech", voice: "alloy", input: "x".repeat(4_000) };
const cost = 10_000;
const left = { status: 0, text: "", json: undefined, headers: new Headers() };

beforeEach(() => {
  if (!isOwnWorld) return;
  media.always(upstream, undefined);
  media.requests.length = 0;
});

/** An upstream that has begun a speech, and answers when the test continues it. */
function slowUpstream(status = 200) {
  const told = Promise.withResolvers<void>();
  const gone: boolean[] = [];
  media.always(upstream, {
    kind: "custom",
    async handle(_seen, answer) {
      await told.promise;
      gone.push(answer.destroyed);
      answer.writeHead(status, { "content-type": "audio/mpeg" });
      answer.end(sampleMp3());
    },
  });
  const begun = (count: number) =>
    until("upstream to be asked", () => media.seen(upstream).length === count);
  return { answer: () => told.resolve(), begun, gone };
}

test("ten speeches that their caller leaves are spoken to their end, and paid for", async () => {
  const caller = await world.caller({ usdMicros: 1_000_000n });
  const speaking = slowUpstream();
  const leaving = new AbortController();
  const { signal } = leaving;
  const asked = Array.from({ length: 10 }, () =>
    caller.post(path, speech, { signal }).catch(() => left),
  );
  await speaking.begun(10);
  leaving.abort();
  await Promise.all(asked);
  // The server has seen it leave, because a later request was answered.
  expect((await caller.balance()).reserved).toBe(10 * cost);
  speaking.answer();
  await until("all to be settled", async () => (await caller.balance()).reserved === 0);
  expect((await caller.balance()).monthSpend).toBe(10 * cost);
  expect(speaking.gone).toEqual(Array.from({ length: 10 }, () => false));
});

test("a retry under its key joins the speech that was left, and later gets it again", async () => {
  const caller = await world.caller({ usdMicros: 1_000_000n });
  const speaking = slowUpstream();
  const leaving = new AbortController();
  const key = "left-1";
  const first = caller
    .post(path, speech, { signal: leaving.signal, idempotencyKey: key })
    .catch(() => left);
  await speaking.begun(1);
  leaving.abort();
  await first;
  const joined = caller.post(path, speech, { idempotencyKey: key });
  await caller.balance();
  speaking.answer();
  const { status, json, headers } = await joined;
  expect([status, headers.get("idempotency-replayed")]).toEqual([200, "true"]);
  const again = await caller.post(path, speech, { idempotencyKey: key });
  expect(again.json).toEqual(json);
  expect(media.seen(upstream)).toHaveLength(1);
  expect(await caller.balance()).toMatchObject({ reserved: 0, monthSpend: cost });
});

test("a speech that was left costs nothing where upstream itself fails", async () => {
  const caller = await world.caller({ usdMicros: 1_000_000n });
  const speaking = slowUpstream(500);
  const leaving = new AbortController();
  const first = caller.post(path, speech, { signal: leaving.signal }).catch(() => left);
  await speaking.begun(1);
  leaving.abort();
  await first;
  speaking.answer();
  await until("its hold to end", async () => (await caller.balance()).reserved === 0);
  expect((await caller.balance()).monthSpend).toBe(0);
});
