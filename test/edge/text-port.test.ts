import { afterEach, expect, test } from "vitest";
import type { TextAnswer, TextPort } from "#common/agreements/text-port.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { pushed } from "#kit/stream/push-stream.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

// The text service in the gateway's own process, where no server stands between an error and the edge.

let edge: EdgeWorld | undefined;
afterEach(async () => {
  await edge?.[Symbol.asyncDispose]();
  edge = undefined;
});
async function start(answer: TextPort["answer"]): Promise<EdgeWorld> {
  edge = await startEdge({ port: { answer, json: () => Promise.reject(new Error("not asked")) } });
  return edge;
}

const body = { model: "chat-1", input: "hi", stream: true };
const secret = "postgres://user:secret@store";
const notes = { replayed: false, ignored: [] };
const faults = ({ log }: EdgeWorld) => log.filter(({ msg }) => msg === "unexpected error");
const response = { id: "resp_1", object: "response", model: "chat-1", status: "in_progress" };
const created = { type: "response.created", sequence_number: 0, response };

async function* broken(error: Error) {
  yield Buffer.from(`event: response.created\ndata: ${JSON.stringify(created)}\n\n`);
  throw error;
}

test("an unknown error is logged once, with its request, and its caller learns nothing of it", async () => {
  const world = await start(() => Promise.reject(new TypeError(secret)));
  const answer = await world.post("/v1/responses", body);
  expect(answer.status).toBe(500);
  const text = await answer.text();
  expect(JSON.parse(text)).toMatchObject({ error: { code: "internal_error" } });
  expect(text).not.toContain("secret");
  const requestId = answer.headers.get("x-request-id");
  expect(faults(world)).toMatchObject([{ requestId, err: { message: secret } }]);
});

test("the same behind the first event", async () => {
  const events: TextAnswer = { kind: "events", events: broken(new TypeError(secret)), ...notes };
  const world = await start(async () => events);
  const text = await (await world.post("/v1/responses", body)).text();
  expect(text).toContain("event: response.failed");
  expect(text).toContain('"code":"internal_error"');
  expect(text).not.toContain("secret");
  expect(faults(world)).toHaveLength(1);
});

test("a refusal is no fault: its reason and what lies behind it are in the request's own line", async () => {
  const cause = Object.assign(new Error(secret), { code: "ECONNREFUSED" });
  const refusal = new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, { cause });
  const world = await start(() => Promise.reject(refusal));
  const answer = await world.post("/v1/responses", body);
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("1");
  await expect
    .poll(() => world.log.find(({ route, status }) => route === "/v1/responses" && status === 503))
    .toMatchObject({
      reason: "service_unavailable",
      cause: expect.stringContaining("ECONNREFUSED"),
    });
  expect(faults(world)).toEqual([]);
});

test("a JSON behind a comment, for which there is no place, is an error of the stream", async () => {
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<TextAnswer>();
  const left = Promise.withResolvers<void>();
  const pieces = pushed<Uint8Array>(() => ({
    resume() {},
    leave() {
      left.resolve();
      return undefined;
    },
  }));
  const world = await start(() => {
    asked.resolve();
    return answered.promise;
  });
  const answer = world.post("/v1/responses", body);
  await asked.promise;
  await world.clock.advance(15_000);
  const stream = (await answer).text();
  answered.resolve({ kind: "pieces", bytes: 2, pieces, ...notes });
  expect(await stream).toMatch(/^: .*[\s\S]*event: response.failed/);
  // The service gives back the room of an answer that is not read.
  await left.promise;
});
