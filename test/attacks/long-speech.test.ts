import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { sampleMp3, sampleWav } from "../../services/upstreams/media/samples.fixture.ts";
import { startMediaWorld } from "../e2e/media-world.ts";
import { isOwnWorld, ownWorldOnly } from "../e2e/world.ts";
import { promptly } from "../support/promptly.ts";
import { until } from "../support/until.ts";

ownWorldOnly();
const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());

const bytesPath = "/audio/speech";
const filePath = "/speech/generations";
const upstream = "POST /audio/speech";
const chinese = "中".repeat(4_096);
/** An MP3 of 960 KB. */
const minute = sampleMp3(60);
/** The price of 4,096 characters. */
const cost = 10_240;
const speech = { model: "scripted-speech", voice: "alloy", input: chinese };

beforeEach(() => {
  if (!isOwnWorld) return;
  media.always(upstream, undefined);
  media.requests.length = 0;
});

test.each([
  ["MP3 at a quarter of the pace", filePath, { speed: 0.25 }],
  ["MP3 at a quarter of the pace, as bytes", bytesPath, { speed: 0.25 }],
  ["samples at half the pace", bytesPath, { speed: 0.5, response_format: "wav" }],
])("a text that would be too long is refused before it is spoken: %s", async (_, path, asked) => {
  const caller = await world.caller({ usdMicros: 1_000_000n });
  const { status, json } = await caller.post(path, { ...speech, ...asked });
  expect([status, json.error?.code, json.error?.param]).toEqual([400, "invalid_value", "input"]);
  expect(json.error.message).toMatch(/minutes.*64 MiB.*shorten 'input', raise 'speed'/);
  expect(json.error.message.includes("response_format")).toBe(path === bytesPath);
  expect(media.seen(upstream)).toEqual([]);
  expect(await caller.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
});

test.each([
  ["MP3", {}],
  ["samples", { response_format: "pcm" }],
  ["English, slowly", { input: "x".repeat(4_096), speed: 0.25 }],
])("the longest texts at a usual pace are spoken: %s", async (_, asked) => {
  const caller = await world.caller({ usdMicros: 1_000_000n });
  const { status } = await caller.post(bytesPath, { ...speech, ...asked });
  expect(status).toBe(200);
  expect(await caller.settled()).toMatchObject({ monthSpend: cost });
});

test.each([bytesPath, filePath])(
  "what comes out too long all the same was spoken, and is charged: %s",
  { timeout: 240_000 },
  async (path) => {
    const caller = await world.caller({ usdMicros: 1_000_000n });
    media.always(upstream, {
      kind: "custom",
      async handle(_seen, answer) {
        answer.writeHead(200, { "content-type": "audio/mpeg" });
        const minutes = Array.from({ length: 90 }, () => minute);
        await pipeline(Readable.from(minutes), answer).catch(() => {});
      },
    });
    const idempotencyKey = `long-${path}`;
    const asked = caller.post(path, speech, { idempotencyKey });
    // A caller that hears it while it is spoken has heard as much as is kept.
    if (path === bytesPath) await expect(asked).rejects.toThrow("terminated");
    else {
      const { status, json, headers } = await asked;
      const error = { code: "model_request_failed", costUsdMicros: cost };
      expect([status, json.error]).toMatchObject([502, error]);
      expect(json.error.message).toMatch(/is charged\. Next time shorten/);
      expect(headers.get("x-should-retry")).toBe("false");
    }
    expect(await caller.settled()).toMatchObject({ monthSpend: cost });
    expect(media.seen(upstream)).toHaveLength(1);
    // A failed speech is not kept for its idempotency key.
    media.always(upstream, undefined);
    expect((await caller.post(path, speech, { idempotencyKey })).status).toBe(200);
    expect(await caller.settled()).toMatchObject({ monthSpend: 2 * cost });
  },
);

test("sounds of one account fill a bounded part of the memory, and another account is served", async () => {
  const hostile = await world.caller({ usdMicros: 10_000_000n });
  const other = await world.caller({ usdMicros: 1_000_000n });
  // The account is now known to have paid.
  await hostile.post(bytesPath, { ...speech, input: "Hi" });
  media.requests.length = 0;
  const told = Promise.withResolvers<void>();
  // Needed where this test fails too, because the upstream's requests would never end.
  onTestFinished(() => told.resolve());
  let atOnce = 0;
  let mostAtOnce = 0;
  media.always(upstream, {
    kind: "custom",
    async handle(_seen, answer) {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      await told.promise;
      atOnce--;
      answer.writeHead(200, { "content-type": "audio/wav" });
      answer.end(sampleWav(2));
    },
  });
  // Each may have 57 MiB, so that two are half of the memory.
  const large = { ...speech, response_format: "wav" };
  const asked = Array.from({ length: 10 }, () => hostile.post(bytesPath, large));
  await until("the first to be asked for", () => atOnce >= 2);
  media.next(upstream, { kind: "custom", handle: (_, answer) => void answer.end(sampleMp3()) });
  const hi = { ...speech, input: "Hi" };
  expect(await promptly(1_000, () => other.post(bytesPath, hi))).toMatchObject({ status: 200 });
  // Long enough for more than two, if there were no bound.
  await delay(200);
  expect(mostAtOnce).toBe(2);
  told.resolve();
  const answers = await Promise.all(asked);
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  expect(mostAtOnce).toBe(2);
});
