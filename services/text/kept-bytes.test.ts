import { afterAll, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { jsonAnswer, scriptedUpstreams } from "../../test/contract/usage.upstream.ts";
import { createTextWorld } from "../../test/contract/usage.world.ts";
import { maxKeptAnswerBytes, maxKeptBytesPerAccount } from "./base/limits.ts";

const someCost = 311n;
const ask = { model: "chat-1", input: "Tell me of the sea." };
const notKept = {
  reason: ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT,
  metadata: { request_id: expect.stringMatching(/^resp_/), cost: `${someCost}` },
};
const upstreams = scriptedUpstreams(async () => jsonAnswer());
const world = await createTextWorld({ upstreams });
afterAll(() => world[Symbol.asyncDispose]());

test("an account has 256 MiB of kept answers; others keep theirs", async () => {
  const large = "x".repeat(maxKeptAnswerBytes - 4_096);
  upstreams.script = async () => jsonAnswer({ text: large });
  const most = Math.ceil(maxKeptBytesPerAccount / maxKeptAnswerBytes);
  const askAs = (key: string, accountId = "acct_test") =>
    world.ask("RESPONSES", ask, { key, principal: { accountId, keyId: `key_${accountId}` } });
  for (let n = 0; n < most; n++) await askAs(`key ${n}`);
  upstreams.script = async () => jsonAnswer({ text: "x".repeat(200_000) });
  await askAs("last");
  await expect(askAs("last")).rejects.toMatchObject(notKept);
  expect((await askAs("key 0")).replayed).toBe(true);
  expect((await askAs(`key ${most - 1}`)).replayed).toBe(true);
  const spent = BigInt(most + 1) * someCost;
  expect(await world.wallet()).toMatchObject({ reserved: 0n, spent });
  expect(upstreams.sent).toHaveLength(most + 1);
  // Another account has a bound of its own.
  const opening = { unit: Unit.USD_MICROS, amount: 1_000_000n, operationId: "other" };
  await world.admin.billing.grant({ accountId: "acct_other", ...opening });
  await askAs("last", "acct_other");
  expect((await askAs("last", "acct_other")).replayed).toBe(true);
});
