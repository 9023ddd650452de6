import { afterAll, beforeAll, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** Milliseconds for which one answer may block the event loop at most, on an idle machine of the reference's speed. */
const mostMs = 50;
/** For a busy machine of half that speed. A time that grows with the square of the items would be seconds. */
const slack = 4;

let upstream: ScriptedUpstream;
let watched: WatchedProcess;
let key: string;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const large = { maxInputTokens: 1_000_000, maxOutputTokens: 1_000_000, safetyMarginTokens: 0 };
  watched = await startWatched({
    upstreams: { main: { protocol: "openai", baseUrl: upstream.baseUrl } },
    models: [chat("far", { upstream: "main", ...large })],
  });
  ({ key } = await watched.account());
});
afterAll(async () => {
  await watched?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));
const part = (at: number) => ({ type: "output_text", text: `t${at}` });
const item = (at: number) => ({ id: `m${at}`, type: "message", content: [part(at)] });
const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10 };
const response = { id: "r", object: "response", created_at: 1, model: "up", output: [] };
const created = { type: "response.created", response };
const completed = (output: object[]) => ({
  type: "response.completed",
  response: { ...response, status: "completed", output, usage },
});
const delta = (at: number) => ({
  type: "response.output_text.delta",
  item_id: `m${at}`,
  delta: "a",
});
const doneItem = (at: number) => ({ type: "response.output_item.done", item: item(at) });

const hostile: Record<string, () => object[]> = {
  "500 items of a part, as many as may be": () => [created, completed(many(500, item))],
  "2,000 items in the last event": () => [created, completed(many(2_000, item))],
  "10,000 items in the last event": () => [created, completed(many(10_000, item))],
  "30,000 parts in one item": () => [
    created,
    completed([{ id: "m", type: "message", content: many(30_000, part) }]),
  ],
  "30,000 parts in an item's end": () => [
    created,
    {
      type: "response.output_item.done",
      output_index: 0,
      item: { id: "m", type: "message", content: many(30_000, part) },
    },
    completed([]),
  ],
  "20,000 items, one event each, without their place": () => [
    created,
    ...many(20_000, doneItem),
    completed([]),
  ],
  "1,000 items, then 3,000 deltas without a place": () => [
    created,
    ...many(1_000, doneItem),
    ...many(3_000, () => delta(7)),
    completed([]),
  ],
};
const ways: [path: string, body: object][] = [
  ["/responses", { model: "far", input: "Hi", stream: true }],
  [
    "/chat/completions",
    { model: "far", messages: [{ role: "user", content: "Hi" }], stream: true },
  ],
];

test.for(Object.keys(hostile).flatMap((name) => ways.map((way) => [name, ...way] as const)))(
  "an answer of very many items keeps no other account waiting: %s, %s",
  { timeout: 240_000 },
  async ([name, path, body]) => {
    const events = (hostile[name] as () => object[])() as Record<string, unknown>[];
    let leastMs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3; round++) {
      upstream.next({ kind: "events", events, done: false });
      await watched.worstDelayMs();
      const answer = await fetch(`${watched.baseUrl}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      leastMs = Math.min(leastMs, await watched.worstDelayMs());
      expect(text).toMatch(/\[DONE\]|"error"/);
    }
    process.stdout.write(`${leastMs.toFixed(0).padStart(6)} ms  ${name}, ${path}\n`);
    expect(leastMs).toBeLessThan(mostMs * slack);
  },
);
