import { expect, test } from "vitest";
import { promptly } from "../../../test/support/promptly.ts";
import { LargeParts, liftParts } from "./large-parts.ts";
import { tokensLiftedAtOnce } from "./limits.ts";

test("log probabilities that are taken out in thousands of groups are told apart as they come", async () => {
  const { signal } = new AbortController();
  const lifted = Promise.withResolvers<NonNullable<ReturnType<typeof liftParts>>>();
  const parts = new LargeParts({
    ...{ isChat: false, isGrouped: true, accountId: "acct_1", signal },
    lift: async () => lifted.promise,
  });
  const logprobs = Array.from({ length: 128_000 }, (_, n) => ({ token: `${n}`, logprob: n }));
  const bytes = Buffer.from(JSON.stringify({ type: "response.output_text.done", logprobs }));
  const job = { bytes, mark: "m:", first: 0, isChat: false, isGrouped: true };
  const one = liftParts(job);
  if (!one?.rest) throw new TypeError("it is too large");
  expect(one.parts).toHaveLength(logprobs.length / tokensLiftedAtOnce);
  lifted.resolve(one);
  // A stream shows them again with its part, its item, and the whole answer.
  await promptly(1_000, async () => {
    for (let event = 0; event < 4; event++) await parts.takeFrom(bytes);
  });
});
