import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { promptly } from "../support/promptly.ts";
import type { Behaviour } from "../support/scripted-behaviours.ts";
import { until, untilStill } from "../support/until.ts";

ownWorldOnly();

/** Milliseconds for a whole answer of the upstream of `timed`. Even a busy machine passes a flood on in less. */
const timeoutMs = 15_000;
/** More than the deltas of a flood. */
const roomy = { maxInputTokens: 2_000_000, maxOutputTokens: 1_000_000 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      timed: { protocol: "openai", baseUrl: baseUrlOf(usual.upstreams.main), timeoutMs },
    },
    models: [
      ...usual.models,
      chat("roomy", roomy),
      chat("timed", { ...roomy, upstream: "timed" }),
      chat("roomy-legacy", { ...roomy, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

function baseUrlOf(upstream: object | undefined): string {
  return (upstream as { baseUrl: string }).baseUrl;
}

const opening = 100_000_000n;
const input = "Hi";
const messages = [{ role: "user", content: input }];
const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
/** A delta of one token in an event of 8 KB. */
const padding = "x".repeat(8_000);

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

const delta = event("response.output_text.delta", {
  ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta: " sea", padding },
});
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const created = event("response.created", { response: { ...response, status: "in_progress" } });
const usage = { input_tokens: 10, output_tokens: 5_000, total_tokens: 5_010 };
const completed = event("response.completed", {
  response: { ...response, status: "completed", usage },
});
/** The price of {@link usage}. */
const usageCost = 10 + 5_000 * outputPrice;

function begin(answer: ServerResponse): void {
  answer.writeHead(200, { "content-type": "text/event-stream" });
  answer.write(created);
}

/** Writes deltas as fast as the caller reads. */
async function flood(answer: ServerResponse, deltas: number): Promise<void> {
  const gone = once(answer, "close");
  for (let sent = 0; sent < deltas && !answer.destroyed; sent++) {
    if (answer.write(delta)) continue;
    const over = new AbortController();
    const drained = once(answer, "drain", { signal: over.signal });
    await Promise.race([gone, drained.catch(() => {})]);
    over.abort();
  }
}

/** Begins a stream and then stops reading. */
async function stall(caller: Caller, model: string): Promise<RawConnection> {
  const { port } = new URL(world.baseUrl);
  const raw = await openRaw(Number(port));
  const body = JSON.stringify({ model, input, stream: true });
  raw.send(
    `POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${caller.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await raw.until((text) => text.includes("response.output_text.delta"));
  raw.socket.pause();
  return raw;
}

/** Bytes that the flooding upstream has written, at its last look. */
let socketBytes = 0;
const spent = async (caller: Caller) => (await caller.settled()).monthSpend;
const deltasIn = (text: string) => text.split("event: response.output_text.delta\n").length - 1;

/** Floods the caller, and notes the number of written bytes. */
function flooding(onBegun: (answer: ServerResponse) => void = () => {}, parts = 2_000) {
  return {
    kind: "custom",
    async handle(_seen, answer) {
      socketBytes = 0;
      begin(answer);
      onBegun(answer);
      const watch = setInterval(() => {
        socketBytes = answer.socket?.bytesWritten ?? socketBytes;
      }, 20);
      await flood(answer, parts);
      clearInterval(watch);
      answer.end(completed);
    },
  } satisfies Behaviour;
}

describe("a caller that stops reading", () => {
  test("until upstream gives up, and then reads on, pays for what it reads", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const begun = Promise.withResolvers<ServerResponse>();
    world.play(flooding(begun.resolve));
    using raw = await stall(caller, "roomy");
    await untilStill("upstream", () => socketBytes);
    // A caller that leaves bytes unread for a second holds the upstream back. This makes the upstream wait.
    await delay(1_500);
    (await begun.promise).destroy();
    raw.socket.resume();
    const text = await raw.until((all) => all.includes("0\r\n\r\n"));
    expect(text.includes("event: response.failed")).toBe(true);
    expect(deltasIn(text)).toBeGreaterThan(100);
    expect(await spent(caller)).toBeGreaterThanOrEqual(0.9 * deltasIn(text) * outputPrice);
  });

  test("takes its own time, not upstream's: our time-out does not count it", async () => {
    const caller = await world.caller({ usdMicros: opening });
    world.play(flooding());
    using raw = await stall(caller, "timed");
    await untilStill("upstream", () => socketBytes);
    await delay(timeoutMs + 1_000);
    raw.socket.resume();
    const text = await raw.until((all) => all.includes("0\r\n\r\n"));
    expect(text.includes("event: response.completed")).toBe(true);
    expect(await spent(caller)).toBe(usageCost);
  });

  test("and takes nothing for 60 s has left: upstream is closed, and what was sent is charged", async () => {
    const caller = await world.caller({ usdMicros: opening });
    // More than all buffers on the way to the caller can hold at their largest, and more than is read ahead.
    const seen = world.play(flooding(undefined, 60_000));
    using raw = await stall(caller, "roomy");
    await untilStill("upstream", () => socketBytes);
    // In steps. Between two of them the watch looks and the request renews its lease of 30 s.
    const ended = async () => {
      if (!seen[0]?.aborted) await world.later(20_000);
      return seen[0]?.aborted;
    };
    await until("the end of the call", ended, { withinMs: 60_000, everyMs: 2_500 });
    raw.socket.resume();
    await raw.closed();
    expect(await spent(caller)).toBeGreaterThan(100 * outputPrice);
  });
});

const textDone = event("response.output_text.done", {
  ...{ item_id: "msg_1", output_index: 0, content_index: 0, text: "Hi." },
});
const chunk = (fields: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "up", ...fields })}\n\n`;
const said = (content: string, reason: string | null = null) =>
  chunk({ choices: [{ index: 0, delta: { content }, finish_reason: reason }] });

describe("a caller that leaves when only usage is awaited", () => {
  const chatUsage = { prompt_tokens: 10, completion_tokens: 5_000 };
  const ofResponses = { output: [created, delta, textDone], last: completed };
  const ofChat = {
    output: [said(" sea"), said("", "stop")],
    last: `${chunk({ choices: [], usage: chatUsage })}data: [DONE]\n\n`,
  };
  const chatPath = "/chat/completions";
  const streams = [
    { name: "a response", path: "/responses", body: { model: "roomy", input }, ...ofResponses },
    {
      name: "chat, translated",
      path: chatPath,
      body: { model: "roomy", messages },
      ...ofResponses,
    },
    { name: "chat, native", path: chatPath, body: { model: "roomy-legacy", messages }, ...ofChat },
  ];

  describe.for(streams)("$name", ({ path, body, output, last }) => {
    /**
     * Leaves once the output has arrived. Answers the upstream's record of the request, the time that it was open, and that of the first
     * text.
     */
    const leave = async (
      afterMs: number | undefined,
      { parts = output, withinMs = Number.POSITIVE_INFINITY } = {},
    ) => {
      const caller = await world.caller({ usdMicros: opening });
      const sent = Promise.withResolvers<void>();
      const seen = world.play({
        kind: "custom",
        async handle(_seen, answer) {
          answer.writeHead(200, { "content-type": "text/event-stream" });
          for (const part of parts) answer.write(part);
          sent.resolve();
          if (afterMs === undefined) return;
          await delay(afterMs);
          answer.end(last);
        },
      });
      const stream = await caller.open(path, body);
      await stream.until(({ data }) => data.includes(" sea"));
      await sent.promise;
      // Bytes that were sent together are read together, a moment later.
      await delay(100);
      const leftAtMs = performance.now();
      await promptly(withinMs, () => {
        stream.leave();
        return seen[0]?.over;
      });
      const tookMs = performance.now() - leftAtMs;
      return { caller, aborted: seen[0]?.aborted, tookMs };
    };

    test("pays the usage that comes 600 ms later", async () => {
      const { caller, aborted } = await leave(600);
      expect(aborted).toBe(false);
      expect(await spent(caller)).toBe(usageCost);
    });

    test("where none comes, upstream is closed after 2 s, and the output is counted", async () => {
      const { caller, aborted, tookMs } = await leave(undefined);
      expect(aborted).toBe(true);
      expect(tookMs).toBeGreaterThan(1_800);
      expect(await spent(caller)).toBeGreaterThan(outputPrice);
      expect(await spent(caller)).toBeLessThan(100);
    });

    test("and no later", async () => {
      expect((await leave(undefined, { withinMs: 3_500 })).aborted).toBe(true);
    });

    test("before that, upstream is closed at once", async () => {
      const parts = output.slice(0, -1);
      expect((await leave(undefined, { parts, withinMs: 1_000 })).aborted).toBe(true);
    });
  });

  /** Leaves when only usage is left, and 20 deltas come. Answers the upstream's record of the request. */
  const leaveBeforeOutput = async (withinMs = Number.POSITIVE_INFINITY) => {
    const caller = await world.caller({ usdMicros: opening });
    const seen = world.play({
      kind: "custom",
      async handle(_seen, answer) {
        begin(answer);
        answer.write(delta + textDone);
        await delay(600);
        for (let i = 0; i < 20; i++) answer.write(delta);
      },
    });
    const stream = await caller.open("/responses", { model: "roomy", input });
    await stream.until(({ name }) => name === "response.output_text.done");
    await promptly(withinMs, () => {
      stream.leave();
      return seen[0]?.over;
    });
    return { caller, aborted: seen[0]?.aborted };
  };

  test("no caller pays for further output, which none gets", async () => {
    const { caller, aborted } = await leaveBeforeOutput();
    expect(aborted).toBe(true);
    expect(await spent(caller)).toBeLessThan(100);
  });

  test("further output ends the wait", async () => {
    expect((await leaveBeforeOutput(1_500)).aborted).toBe(true);
  });

  test("a JSON answer whose body is on its way is read to its usage", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const headSent = Promise.withResolvers<void>();
    const seen = world.play({
      kind: "custom",
      async handle(_seen, answer) {
        answer.writeHead(200, { "content-type": "application/json" });
        answer.flushHeaders();
        headSent.resolve();
        await delay(600);
        answer.end(JSON.stringify({ ...response, status: "completed", usage }));
      },
    });
    const leaving = new AbortController();
    const asked = caller.post("/responses", { model: "roomy", input }, { signal: leaving.signal });
    asked.catch(() => {});
    await headSent.promise;
    await delay(100);
    leaving.abort();
    await seen[0]?.over;
    expect(seen[0]?.aborted).toBe(false);
    expect(await spent(caller)).toBe(usageCost);
  });
});

test("reasoning that comes whole with its item counts as output, in chat too", async () => {
  const summary = Array.from({ length: 200 }, () => "The tide turns twice a day.").join(" ");
  const item = {
    id: "rs_1",
    type: "reasoning",
    summary: [{ type: "summary_text", text: summary }],
  };
  const thought = event("response.output_item.done", { output_index: 0, item });
  const asked = { "/responses": { input }, "/chat/completions": { messages } };
  for (const [path, body] of Object.entries(asked)) {
    const caller = await world.caller({ usdMicros: opening });
    world.play({
      kind: "custom",
      handle(_seen, answer) {
        begin(answer);
        answer.write(thought + delta.replace('"output_index":0', '"output_index":1'));
      },
    });
    const stream = await caller.open(path, { model: "roomy", ...body });
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    expect([path, await spent(caller)]).toEqual([path, expect.closeTo(1_400 * outputPrice, -4)]);
  }
});
