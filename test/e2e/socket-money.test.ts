import { afterAll, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type CallerSocket, openSocket } from "../support/caller-socket.ts";
import { until } from "../support/until.ts";
import type { Caller } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ env: { GENMESH_WS_IN_FLIGHT: "2" } });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const open = (caller: Caller) => openSocket(caller.baseUrl, caller.key);
const create = (fields: object) => ({
  ...{ type: "response.create", model: "scripted", max_output_tokens: 50 },
  ...fields,
});
const message = (content: string) => ({ type: "message", role: "user", content });
/** The cost of the upstream's usual usage: 10 tokens of input, 5 of output. */
const cost = 30;
const delta = "response.output_text.delta";
const hasBegun = (socket: CallerSocket) =>
  until("its answer has begun", () => socket.frames.some(({ type }) => type === delta));
/** Answers that stop behind their first piece of text until the result is called. */
function hold(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  world.play({ kind: "ok", restAfter: promise });
  return resolve;
}

test("a wallet that is too small for the second turn takes the third after a top-up", async () => {
  world.play();
  const caller = await world.caller({ usdMicros: 1_000n });
  using socket = await open(caller);
  const turn = async (fields: object) => {
    socket.send(create(fields));
    return (await socket.turn()).at(-1);
  };
  const first = await turn({ input: [message("Hi")] });
  const previous_response_id = first?.response?.id;
  const long = message("word ".repeat(2_000));
  expect(await turn({ input: [long], previous_response_id })).toMatchObject({
    ...{ type: "error", status: 402 },
    headers: { "x-should-retry": "false" },
  });
  expect(await caller.settled()).toMatchObject({ available: 1_000 - cost, monthSpend: cost });
  const gone = await turn({ input: [message("Go on.")], previous_response_id });
  expect(gone?.error?.code).toBe("previous_response_not_found");
  const { accountId } = caller;
  const topUp = { accountId, amount: 100_000n, operationId: "top-up" };
  await world.admin.billing.grant({ ...topUp, unit: Unit.USD_MICROS });
  const all = [message("Hi"), ...(first?.response?.output ?? []), long];
  expect((await turn({ input: all }))?.type).toBe("response.completed");
  expect(await caller.settled()).toMatchObject({ reserved: 0, monthSpend: 2 * cost });
});

test("two lanes on a wallet for one of them are one answer and one refusal", async () => {
  const end = hold();
  const rich = await world.caller();
  using measuring = await open(rich);
  measuring.send(create({ input: "Hi" }));
  await hasBegun(measuring);
  const { reserved } = await rich.balance();
  const caller = await world.caller({ usdMicros: BigInt(Math.floor(1.5 * reserved)) });
  using socket = await open(caller);
  const requests = world.upstream.requests.length;
  for (const stream_id of ["a", "b"]) socket.send(create({ stream_id, input: "Hi" }));
  const [refused] = (await socket.turn()).slice(-1);
  expect(refused).toMatchObject({ type: "error", status: 402 });
  await hasBegun(socket);
  end();
  const ended = (await socket.turn()).at(-1);
  expect(ended?.type).toBe("response.completed");
  expect([refused?.stream_id, ended?.stream_id].sort()).toEqual(["a", "b"]);
  expect(world.upstream.requests).toHaveLength(requests + 1);
  expect(await caller.settled()).toMatchObject({ reserved: 0, monthSpend: cost });
});

test("an answer whose key is deleted costs as much as one whose caller left", async () => {
  const end = hold();
  const [caller, leaver] = [await world.caller(), await world.caller()];
  const doomed = await world.withKey(caller, {});
  using cut = await open(doomed);
  using left = await open(leaver);
  for (const socket of [cut, left]) {
    socket.send(create({ input: "Hi" }));
    await hasBegun(socket);
  }
  await world.admin.auth.revokeKey({ keyId: doomed.keyId });
  expect(await cut.closed).toBe(1008);
  expect(cut.frames.slice(-2)).toMatchObject([
    { type: "response.failed" },
    { type: "error", status: 401, error: { code: "invalid_api_key" } },
  ]);
  left.ws.terminate();
  const { monthSpend } = await leaver.settled();
  expect(monthSpend).toBeGreaterThan(0);
  expect(await caller.settled()).toMatchObject({ reserved: 0, monthSpend });
  end();
});
