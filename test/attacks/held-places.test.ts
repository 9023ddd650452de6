import { once } from "node:events";
import { afterAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { until, untilStill } from "../support/until.ts";

ownWorldOnly();

/** More than the deltas of a flood. */
const roomy = { maxInputTokens: 2_000_000, maxOutputTokens: 1_000_000 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      four: { ...usual.upstreams.pair, maxConcurrent: 4 },
      tight: { ...usual.upstreams.pair, maxConcurrent: 1, connectTimeoutMs: 1_000 },
      lone: { ...usual.upstreams.pair, maxConcurrent: 2 },
      // The queue of an upstream, up to 256 MB, is read before a place is given back. A busy machine takes seconds for that.
      flooding: { ...usual.upstreams.pair, maxConcurrent: 2, connectTimeoutMs: 30_000 },
    },
    models: [
      ...usual.models,
      chat("four", { upstream: "four" }),
      chat("tight", { upstream: "tight" }),
      chat("lone", { upstream: "lone" }),
      chat("flooding", { ...roomy, upstream: "flooding" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const opening = 100_000_000n;

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** One token in an event of 8 KB, like with `top_logprobs`. */
const delta = event("response.output_text.delta", {
  ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta: " sea" },
  padding: "x".repeat(8_000),
});
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };

/** Streams without an end, as fast as the caller reads. Calls `written` at each delta. */
function playFlood(written: () => void) {
  return world.play({
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(event("response.created", { response: { ...response, status: "in_progress" } }));
      const gone = once(answer, "close");
      while (!answer.destroyed) {
        written();
        if (answer.write(delta)) continue;
        const over = new AbortController();
        await Promise.race([gone, once(answer, "drain", { signal: over.signal }).catch(() => {})]);
        over.abort();
      }
    },
  });
}

/** Begins a stream and reads no further byte. */
async function stall(caller: Caller, model: string): Promise<RawConnection> {
  const raw = await openRaw(Number(new URL(world.baseUrl).port));
  const body = JSON.stringify({ model, input: "Hi", stream: true });
  raw.send(
    `POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${caller.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await raw.until((text) => text.includes("response.output_text.delta"));
  raw.socket.pause();
  return raw;
}

describe("an upstream with few places", () => {
  test("is never one account's alone where another uses it", async () => {
    const [hostile, other] = [
      await world.caller({ usdMicros: opening }),
      await world.caller({ usdMicros: opening }),
    ];
    expect((await other.post("/responses", { model: "four", input: "Hi" })).status).toBe(200);
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const leaving = new AbortController();
    const openOne = () =>
      hostile
        .open("/responses", { model: "four", input: "Hi" }, { signal: leaving.signal })
        .catch(() => {});
    const asked = [openOne()];
    await until("its first stream", () => seen.length > 0);
    const { reserved } = await hostile.balance();
    for (let at = 1; at < 4; at++) asked.push(openOne());
    // Each has its money held, and has its place or waits for it.
    await until("the others", async () => (await hostile.balance()).reserved >= 4 * reserved);
    await until("its share to be used", () => seen.length >= 3);
    world.play();
    expect((await other.post("/responses", { model: "four", input: "Hi" })).status).toBe(200);
    leaving.abort();
    await Promise.all(asked);
  });

  test("is one account's while it is alone, and the next place that it gives back is another's", async () => {
    const [team, other] = [
      await world.caller({ usdMicros: opening }),
      await world.caller({ usdMicros: opening }),
    ];
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const openOne = async () => {
      const leaving = new AbortController();
      await team.open("/responses", { model: "lone", input: "Hi" }, { signal: leaving.signal });
      return leaving;
    };
    const [first, second] = [await openOne(), await openOne()];
    expect(seen.length).toBe(2);
    const third = team.post("/responses", { model: "lone", input: "Hi" });
    world.play();
    const answered = other.post("/responses", { model: "lone", input: "Hi" });
    first.abort();
    expect((await answered).status).toBe(200);
    second.abort();
    expect((await third).status).toBe(200);
  });

  test("are not there in time: 503, for the upstream was never asked, and nothing is charged", async () => {
    const [holder, other] = [await world.caller(), await world.caller()];
    const seen = world.play({ kind: "hang" });
    const stop = new AbortController();
    const held = holder.post(
      "/responses",
      { model: "tight", input: "Hi" },
      { signal: stop.signal },
    );
    held.catch(() => {});
    await until("the place to be taken", () => seen.length === 1);
    const before = await other.balance();
    const refused = await other.post("/responses", { model: "tight", input: "Hi" });
    expect(refusalOf(refused)).toBe("503 server_error service_unavailable null");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(seen).toHaveLength(1);
    expect(await other.settled()).toEqual(before);
    stop.abort();
  });

  test("serves another account while two hold their streams back, and these pay", async () => {
    const hostile = [
      await world.caller({ usdMicros: opening }),
      await world.caller({ usdMicros: opening }),
    ];
    const other = await world.caller({ usdMicros: opening });
    let deltas = 0;
    const seen = playFlood(() => deltas++);
    using stack = new DisposableStack();
    const held = await Promise.all(hostile.map((caller) => stall(caller, "flooding")));
    for (const raw of held) stack.use(raw);
    // All buffers on the way to the callers are full.
    await untilStill("the deltas", () => deltas);
    const streams = [...seen];
    world.play();
    const { status } = await other.post("/responses", { model: "flooding", input: "Hi" });
    expect(status).toBe(200);
    await until("a stream to be closed at upstream", () => streams.some(({ aborted }) => aborted));
    stack.dispose();
    for (const caller of hostile) expect((await caller.settled()).monthSpend).toBeGreaterThan(0);
  });
});
