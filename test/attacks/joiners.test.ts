import { afterAll, expect, test } from "vitest";
import { maxJoiners } from "../../services/text/base/limits.ts";
import { refusalOf } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { requestsUnderWay } from "../support/requests-under-way.ts";
import { until } from "../support/until.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const idempotencyKey = "one";
const refusal = "429 rate_limit_error rate_limit_exceeded null";

test.for([
  { model: "scripted", input: "Hi", stream: true },
  { model: "scripted", input: "Hi" },
])("a bounded number joins %j, and the others are refused for nothing", async (body) => {
  const payer = await world.caller();
  const allCame = Promise.withResolvers<void>();
  const seen = world.play({ kind: "ok", firstByteAfter: allCame.promise });
  const ask = (more: object = {}) =>
    payer.post("/responses", { ...body, ...more }, { idempotencyKey });
  const joined = Array.from({ length: 1 + maxJoiners }, () => ask());
  await until("all of them", async () => {
    return (await requestsUnderWay(world.opsUrl)) === 1 + maxJoiners;
  });
  await until("the one upstream", async () => seen.length === 1);
  const asked = Promise.all(Array.from({ length: 20 }, () => ask()));
  const allSit = async () => (await requestsUnderWay(world.opsUrl)) === 1 + maxJoiners + 20;
  await Promise.race([asked, until("all to sit", allSit)]);
  // A caller that wants the answer in another form waits for its end.
  const other = ask({ stream: !("stream" in body) });
  allCame.resolve();
  const late = await asked;
  expect(late.map(refusalOf)).toEqual(late.map(() => refusal));
  for (const { status } of [...(await Promise.all(joined)), await other]) expect(status).toBe(200);
  expect(seen).toHaveLength(1);
  expect(10_000_000 - (await payer.settled()).available).toBe(30);
  // The answer is kept, so callers get it now.
  expect((await ask()).status).toBe(200);
});
