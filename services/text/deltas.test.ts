import { createHook } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { createMetrics } from "#kit/base/metrics.ts";
import { createJsonReader } from "#kit/json-reader/index.ts";
import { consume } from "#kit/stream/push-stream.ts";
import { createInferences } from "#kit/telemetry/inference.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { systemClock } from "#kit/time/clock.ts";
import { ReplyBody } from "#kit/upstream/reply-body.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { testContext, testRequest, testUpstream } from "../../test/support/text-requests.ts";
import { createTextUpstreams } from "../upstreams/text/index.ts";
import type { StreamAnswer } from "../upstreams/text/port.ts";
import { Alone } from "./answers/answering.ts";
import { EventRun } from "./answers/event-run.ts";
import { UnderWay } from "./base/under-way.ts";
import { createSilence } from "./metering/hidden-time.ts";
import { createTextPort } from "./port.ts";

const workshop = createWorkshop();
afterAll(() => workshop[Symbol.asyncDispose]());
const principal = { accountId: "acc_1", keyId: "key_1" };
const event = (type: string, fields: object) =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
const item = {
  type: "message",
  id: "msg_1",
  status: "in_progress",
  role: "assistant",
  content: [],
};
/** A complete beginning, so that the events behind it need no change. */
const begin = Buffer.concat([
  event("response.created", { sequence_number: 0, response: { id: "resp_1" } }),
  event("response.in_progress", { sequence_number: 1, response: { id: "resp_1" } }),
  event("response.output_item.added", { sequence_number: 2, output_index: 0, item }),
  event("response.content_part.added", { sequence_number: 3, ...place, part }),
]);
const deltas = Array.from({ length: 1_000 }, (_, at) =>
  event("response.output_text.delta", {
    ...{ sequence_number: at + 4, ...place, delta: "and ", logprobs: [] },
  }),
);

/**
 * The way of a stream within one process, from the bytes of the upstream's socket to `take`. Resolves when the first events have come
 * through.
 */
async function streamTo(take: (bytes: Uint8Array) => Promise<unknown> | boolean) {
  const pauses: string[] = [];
  const controller = {
    paused: false,
    pause() {
      this.paused = true;
      pauses.push("pause");
    },
    resume() {
      this.paused = false;
      pauses.push("resume");
    },
  };
  const body = new ReplyBody(controller as never, () => {});
  const metrics = createMetrics();
  const http = {
    async request() {
      setImmediate(() => body.came(begin));
      return { status: 200, headers: { "content-type": "text/event-stream" }, body };
    },
    async [Symbol.asyncDispose]() {},
  };
  const texts = createTextUpstreams(
    testContext({ http, inferences: createInferences({ metrics }) }),
  );
  const answer = async (stop: AbortController) => {
    const { signal } = stop;
    const request = testRequest("responses", [testUpstream("OPENAI")], { stream: true, signal });
    const events = new EventRun(
      (await texts.send(request)) as StreamAnswer,
      {
        request: { operation: "responses", hosted: false, bounds: { input: 1, output: 1e6 } },
        metered: { told: {}, saw() {}, finish: async () => ({ isOurs: true }) },
        ...{ stop, clock: systemClock, ignored: [], isKept: false },
        ...{ closeUpstream() {}, onFirstOutput() {}, withUsage: false },
        silence: createSilence(systemClock, 0),
      } as never,
    );
    return { kind: "events" as const, events, replayed: false, ignored: [] };
  };
  const port = createTextPort({
    answering: { ask: () => new Alone(answer, new UnderWay()) },
    reader: createJsonReader(workshop),
  });
  const begun = await port.answer(
    { operation: Operation.RESPONSES, body: Buffer.from("{}") },
    { principal, requestId: "req_1", signal: new AbortController().signal },
  );
  if (begun.kind !== "events") throw new Error("no stream");
  const began = Promise.withResolvers<void>();
  const over = consume(begun.events, (bytes) => {
    began.resolve();
    return take(bytes);
  });
  over.catch(() => {});
  await began.promise;
  return { body, pauses };
}

/** Calls `work` in that many turns of the event loop. Answers the number of promises that were made meanwhile. */
function promisesOf(turns: number, work: (turn: number) => void): Promise<number> {
  let made = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === "PROMISE") made++;
    },
  });
  return new Promise((resolve) => {
    const next = (at: number) => {
      if (at < turns) {
        work(at);
        setImmediate(next, at + 1);
        return;
      }
      hook.disable();
      resolve(made);
    };
    hook.enable();
    setImmediate(next, 0);
  });
}

test("a delta costs no promise between the upstream's socket and the caller's", async () => {
  let pieces = 0;
  const { body } = await streamTo(() => {
    pieces++;
    return true;
  });
  const idle = await promisesOf(deltas.length, () => {});
  const before = pieces;
  const made = await promisesOf(deltas.length, (at) => body.came(deltas[at] as Buffer));
  expect(pieces - before).toBe(deltas.length);
  // Other work in this process makes some.
  expect(made).toBeLessThan(idle + deltas.length / 10);
});

test("what needs no change is passed on as the slice that it came in", async () => {
  const pieces: Uint8Array[] = [];
  const { body } = await streamTo((bytes) => {
    pieces.push(bytes);
    return true;
  });
  for (const one of deltas.slice(0, 3)) {
    body.came(one);
    await turn();
    expect(pieces.at(-1)?.buffer).toBe(one.buffer);
    expect(pieces.at(-1)?.byteOffset).toBe(one.byteOffset);
  }
});

test("a caller that takes no more pauses the upstream's socket, and one that goes on lets it go on", async () => {
  const room = Promise.withResolvers<void>();
  let taken = 0;
  const { body, pauses } = await streamTo((bytes) => {
    taken += bytes.length;
    return room.promise;
  });
  const begun = taken;
  for (const one of deltas) body.came(one);
  await turn();
  expect([taken, ...new Set(pauses)]).toEqual([begun, "pause"]);
  room.resolve();
  await turn();
  expect(pauses.at(-1)).toBe("resume");
  expect(taken - begun).toBe(Buffer.concat(deltas).length);
});
