import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createJsonReader, mediumShare } from "#kit/json-reader/index.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";

/** Bodies that one account sends at once. */
const bodies = 40;
const signal = new AbortController().signal;

let namesMade = 0;
/** JSON whose objects have names that no body had before. With 66 objects it has 60 KB. */
function ofNewNames(objects = 66): Buffer {
  const x = Array.from({ length: objects }, () =>
    Object.fromEntries(Array.from({ length: 90 }, () => [`new${namesMade++}`, 0])),
  );
  return Buffer.from(JSON.stringify({ model: "none", x }));
}

/** 124 KB of numbers, with a whole character as an escape, so that its strings are searched. */
const ofNumbers = () =>
  Buffer.from(`{"model":"none","input":"\\ud83d\\ude00","x":[${"0,".repeat(62_000)}0]}`);
/** 130 KB of numbers that a double rounds. */
const ofRounded = () =>
  Buffer.from(`{"x":[${Array.from({ length: 6_600 }, (_, at) => `0.12345678901${at + 1e4}`)}]}`);
/** Lists within lists, without a name. */
const ofLists = () => Buffer.from(`{"x":[${"[[]],".repeat(25_000)}0]}`);

/** An agent's prompt: texts full of marks, some hundred names. */
const prompt = Buffer.from(
  JSON.stringify({
    model: "chat",
    tools: Array.from({ length: 40 }, (_, at) => ({
      type: "function",
      name: `tool_${at}`,
      parameters: { type: "object", properties: { a: { enum: ["b", "c"] } }, required: ["a"] },
    })),
    input: `[{"a": 1, "b": [2, 3]}, word] `.repeat(2_000),
  }),
);

test.each([
  ["names", ofNewNames],
  ["numbers", ofNumbers],
  ["numbers that are rounded", ofRounded],
  ["lists", ofLists],
])(
  "small bodies of many %s wait for one another, and no other account for them",
  async (_, made) => {
    await using workshop = createWorkshop();
    const reader = createJsonReader(workshop);
    let over = 0;
    const hostile = Array.from({ length: bodies }, async () => {
      await reader.read(made(), { fingerprint: {} }, { accountId: "hostile", signal });
      over++;
    });
    await reader.read(prompt, {}, { accountId: "other", signal });
    // A short body is read at once, even while others send long ones.
    expect(over).toBe(0);
    await hostile[0];
    await reader.read(made(), {}, { accountId: "other", signal });
    // In turns: after the body that is being read, and perhaps the next.
    expect(over).toBeLessThan(5);
    await Promise.all(hostile);
  },
);

test("an account has a bounded number of them waiting", async () => {
  await using workshop = createWorkshop();
  const reader = createJsonReader(workshop);
  const most = mediumShare.each.places + mediumShare.each.waiting;
  const asked = Array.from({ length: most + 10 }, () =>
    reader.read(ofNewNames(6), {}, { accountId: "hostile", signal }),
  );
  const answers = await Promise.allSettled(asked);
  const refused = answers.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(10);
  for (const one of refused) {
    expect(one).toMatchObject({ reason: { reason: ErrorReason.RATE_LIMIT_EXCEEDED } });
  }
});
