import { afterAll, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import {
  events,
  feed,
  jsonAnswer,
  scriptedUpstreams,
} from "../../../test/contract/usage.upstream.ts";
import { createTextWorld } from "../../../test/contract/usage.world.ts";
import { largeAnswerBytes } from "../../upstreams/text/limits.ts";
import { createLargeAnswers } from "./index.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const text = "sea ".repeat(largeAnswerBytes / 4);
const upstreams = scriptedUpstreams(async () => jsonAnswer());
// Threads that take no work, like threads that are all busy for too long.
const workshop = createWorkshop();
const large = createLargeAnswers(workshop);
await workshop[Symbol.asyncDispose]();
const world = await createTextWorld({ upstreams, large });
afterAll(() => world[Symbol.asyncDispose]());

test("a stream whose answer cannot be kept ends as it does, and is charged", async () => {
  upstreams.script = async ({ signal }) => {
    const { push, answer } = feed(signal);
    push(events.begin(), events.delta("Hello"), events.end({ text }));
    return answer;
  };
  const before = (await world.wallet()).spent;
  const stream = world.stream("RESPONSES", { ...ask, stream: true }, { key: "one" });
  expect(await stream.rest()).toContain("event: response.completed");
  expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: before + 311n });
  await expect(world.ask("RESPONSES", ask, { key: "one" })).rejects.toMatchObject({
    reason: ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT,
  });
});

test.for([undefined, { key: "two" }])(
  "an answer that cannot be shown with what was counted of it is charged, and frees %j",
  async (key) => {
    upstreams.script = async () => jsonAnswer({ text, usage: undefined });
    const before = (await world.wallet()).spent;
    const asked = world.ask("RESPONSES", ask, key);
    await expect(asked).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
      metadata: { cost: expect.stringMatching(/^[1-9]/) },
    });
    const { reserved, spent } = await world.wallet();
    expect(reserved).toBe(0n);
    expect(spent).toBeGreaterThan(before);
    upstreams.script = async () => jsonAnswer();
    expect(await world.ask("RESPONSES", ask, key)).toMatchObject({ replayed: false });
  },
);
