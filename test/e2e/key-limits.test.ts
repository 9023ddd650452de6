import { afterAll, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { keyManagers, send } from "./key-owners.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();
const { newOwner, make } = keyManagers(world);

const dayMs = 86_400_000;
const large = { model: "scripted", input: "Hi" };
const body = { ...large, max_output_tokens: 16 };
const limitReached = "403 permission_error key_limit_exceeded null";

/** To a Tuesday, so that the end of the day does not end a week. */
async function toTuesday() {
  do await world.later(dayMs);
  while (new Date(world.now()).getUTCDay() !== 2);
}

test("limits of a day, a week, a month and for ever begin anew when they say so", async () => {
  await toTuesday();
  // No month may end in the days that the test takes.
  while (new Date(world.now()).getUTCDate() > 20) await toTuesday();
  const owner = await newOwner();
  const resets = ["daily", "weekly", "monthly", null];
  const keys = await Promise.all(
    resets.map((limit_reset) => make(owner, { limitUsdMicros: 6_000, limit_reset })),
  );
  expect(keys.map(({ data }) => data.limit_reset)).toEqual(resets);
  // One hold fits (it is above 4,000). After this charge none fits.
  const usage = { input_tokens: 1_000, output_tokens: 500, total_tokens: 1_500 };
  for (const { caller } of keys) {
    world.play({ kind: "ok", usage });
    expect((await caller.post("/responses", large)).status).toBe(200);
  }
  await owner.settled();
  const spent = async () =>
    Promise.all(
      keys.map(async ({ caller }) => {
        const { data } = (await caller.get("/key")).json;
        expect(data.limitRemainingUsdMicros).toBe(Math.round(data.limit_remaining * 1e6));
        return 6_000 - data.limitRemainingUsdMicros;
      }),
    );
  const statuses = async () => {
    const answers = await Promise.all(keys.map(({ caller }) => caller.post("/responses", large)));
    return answers.map((answer) => (answer.status === 200 ? 200 : refusalOf(answer)));
  };
  expect(await spent()).toEqual([3_000, 3_000, 3_000, 3_000]);
  expect(await statuses()).toEqual(resets.map(() => limitReached));
  await world.later(dayMs);
  expect(await spent()).toEqual([0, 3_000, 3_000, 3_000]);
  await world.later(6 * dayMs);
  expect(await spent()).toEqual([0, 0, 3_000, 3_000]);
  await world.later(31 * dayMs);
  expect(await spent()).toEqual([0, 0, 0, 3_000]);
  expect((await statuses()).slice(0, 3)).toEqual([200, 200, 200]);
  expect((await statuses())[3]).toBe(limitReached);
});

test("a change of the period counts what was spent in the other at once", async () => {
  await toTuesday();
  const owner = await newOwner();
  const { data, caller } = await make(owner, { limit: 1, limit_reset: "daily" });
  world.play();
  expect((await caller.post("/responses", body)).status).toBe(200);
  await owner.settled();
  await world.later(dayMs);
  const remaining = async (change: object) => {
    const { json } = await send(owner, "PATCH", `/keys/${data.id}`, change);
    return [json.data.limit_reset, json.data.limitRemainingUsdMicros];
  };
  expect(await remaining({})).toEqual(["daily", 1_000_000]);
  expect(await remaining({ limit_reset: "weekly" })).toEqual(["weekly", 999_970]);
  expect(await remaining({ limit_reset: null })).toEqual([null, 999_970]);
  expect(await remaining({ limit: 2 })).toEqual([null, 1_999_970]);
  expect(await remaining({ limit: null })).toEqual([null, null]);
  expect(await remaining({ limit: 1 })).toEqual([null, 999_970]);
});
