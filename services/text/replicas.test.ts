import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { beatMs } from "#common/paid-work/limits.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, type TextWorld } from "../../test/contract/usage.world.ts";
import { until } from "../../test/support/until.ts";
import { maxJoiners, waitElsewhereMs, waitPollMs } from "./base/limits.ts";

// Two replicas with one store. Equal requests are split between them, because the pool of addresses did not bring them together.

const someCost = 311n;
const ask = { model: "chat-1", input: "Tell me of the sea." };
const key = { key: "one" };

let stack: AsyncDisposableStack;
let clock: ReturnType<typeof manualClock>;
let upstreams: ScriptedUpstreams;
let replicas: [TextWorld, TextWorld];
/** Lets the upstream answer. */
let go: () => void;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-replicas-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const opened = Promise.withResolvers<void>();
  go = opened.resolve;
  clock = manualClock();
  upstreams = scriptedUpstreams(async () => {
    await opened.promise;
    return jsonAnswer();
  });
  const open = async (isNew: boolean) =>
    stack.use(await createTextWorld({ upstreams, clock, isNew, file: join(folder, "mesh.db") }));
  replicas = [await open(true), await open(false)];
});
afterEach(() => stack[Symbol.asyncDispose]());

/** At each replica: the request that begins, or waits for the other one, and those that join it. */
const together = 2 * (1 + maxJoiners);

test("as many over both as may join are one upstream call and one charge", async () => {
  const all = Array.from({ length: together }, (_, n) =>
    (n % 2 ? replicas[0] : replicas[1]).ask("RESPONSES", ask, key),
  );
  await until("it is sent", () => upstreams.sent.length > 0);
  go();
  let answered = 0;
  for (const one of all) void one.then(() => answered++);
  await until("all are answered", async () => {
    await clock.advance(waitPollMs);
    return answered === together;
  });
  const answers = await Promise.all(all);
  expect(upstreams.sent).toHaveLength(1);
  expect(new Set(answers.map(({ json }) => JSON.stringify(json))).size).toBe(1);
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
  expect(await replicas[0].wallet()).toMatchObject({ reserved: 0n, spent: someCost });
});

test("another body is refused at the other replica too, while the first one runs", async () => {
  const first = replicas[0].ask("RESPONSES", ask, key);
  await until("it is sent", () => upstreams.sent.length > 0);
  const other = replicas[1].ask("RESPONSES", { ...ask, input: "Of the land." }, key);
  await expect(other).rejects.toMatchObject({ reason: ErrorReason.IDEMPOTENCY_KEY_REUSED });
  go();
  expect((await first).replayed).toBe(false);
});

test("one that waited for long enough is told to come back, and is no second request", async () => {
  const first = replicas[0].ask("RESPONSES", ask, key);
  await until("it is sent", () => upstreams.sent.length > 0);
  const told = replicas[1].ask("RESPONSES", ask, key).catch((error: unknown) => error);
  let answer: unknown;
  void told.then((one) => {
    answer = one;
  });
  const began = clock.now();
  await until("it is told", async () => {
    await clock.advance(beatMs);
    return answer;
  });
  expect(answer).toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
    metadata: { retry_after_ms: "5000" },
  });
  expect(clock.now() - began).toBeGreaterThanOrEqual(waitElsewhereMs);
  go();
  expect((await first).json.id).toBe("resp_1");
  expect((await replicas[1].ask("RESPONSES", ask, key)).replayed).toBe(true);
  expect(upstreams.sent).toHaveLength(1);
  expect(await replicas[1].wallet()).toMatchObject({ reserved: 0n, spent: someCost });
});
