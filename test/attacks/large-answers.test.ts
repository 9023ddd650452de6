import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chat } from "../e2e/catalog.ts";
import { promptly } from "../support/promptly.ts";
import { slowness } from "../support/reference-machine.ts";
import {
  type ScriptedUpstream,
  type SeenRequest,
  startScriptedUpstream,
} from "../support/scripted-upstream.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** Milliseconds for which one request may block the event loop at most, on a machine as fast as the reference. */
const mostMs = 50;
/** Rounds. The least time counts, because other work of the machine slows only some of them. */
const rounds = 3;

const large = { maxInputTokens: 1_000_000, maxOutputTokens: 100_000, safetyMarginTokens: 0 };

/** An honest answer of `tokens` tokens, with 20 alternatives for each: 1.6 KB a token. */
const alternatives = Array.from({ length: 20 }, (_, i) => ({
  token: ` word${i}`,
  bytes: [32, 119, 111, 114, 100],
  logprob: -12.345678901234 - i,
}));
const tokenAt = (at: number) => ({
  token: " word",
  bytes: [32, 119, 111, 114, 100],
  logprob: -0.00012345678 - at,
  top_logprobs: alternatives,
});
const textOf = (tokens: number) => " word".repeat(tokens);
const logprobsOf = (tokens: number) => Array.from({ length: tokens }, (_, at) => tokenAt(at));

function responseOf(tokens: number, hasUsage: boolean) {
  const part = { type: "output_text", text: textOf(tokens), annotations: [] };
  const content = [{ ...part, logprobs: logprobsOf(tokens) }];
  const item = { type: "message", id: "m1", role: "assistant", status: "completed", content };
  const usage = { input_tokens: 100, output_tokens: tokens, total_tokens: tokens + 100 };
  return {
    ...{ id: "r1", object: "response", created_at: 1, status: "completed", model: "m" },
    output: [item],
    usage: hasUsage ? usage : null,
  };
}

function completionOf(tokens: number, hasUsage: boolean) {
  const logprobs = { content: logprobsOf(tokens).map((one) => ({ ...one, secret: "x" })) };
  const message = { role: "assistant", content: textOf(tokens) };
  const usage = { prompt_tokens: 100, completion_tokens: tokens, total_tokens: tokens + 100 };
  return {
    ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
    choices: [{ index: 0, finish_reason: "stop", message, logprobs }],
    ...(hasUsage ? { usage } : {}),
  };
}

function* eventsOf(tokens: number, hasUsage: boolean): Iterable<string> {
  const { output, ...response } = responseOf(tokens, hasUsage);
  const [item] = output;
  const [part] = item?.content ?? [];
  let number = 0;
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...fields })}\n\n`;
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const at = { item_id: "m1", output_index: 0, content_index: 0 };
  yield event("response.created", { response: begun });
  yield event("response.output_item.added", {
    output_index: 0,
    item: { ...item, content: [], status: "in_progress" },
  });
  yield event("response.content_part.added", { ...at, part: { ...part, text: "", logprobs: [] } });
  for (let n = 0; n < tokens; n++) {
    yield event("response.output_text.delta", { ...at, delta: " word", logprobs: [tokenAt(n)] });
  }
  yield event("response.output_text.done", { ...at, text: part?.text, logprobs: part?.logprobs });
  yield event("response.content_part.done", { ...at, part });
  yield event("response.output_item.done", { output_index: 0, item });
  yield event("response.completed", { response: { ...response, output } });
  yield "data: [DONE]\n\n";
}

/** Answers, each made once. Making them is work of the upstream, in this process. */
const made = new Map<string, string | string[]>();
function madeOnce<T extends string | string[]>(name: string, make: () => T): T {
  const known = made.get(name) ?? make();
  made.set(name, known);
  return known as T;
}

/** The upstream's answer, by its `metadata` and its route. */
async function honest(seen: SeenRequest, answer: ServerResponse): Promise<void> {
  const { tokens, usage = "yes", whole } = seen.body.metadata ?? {};
  const hasUsage = usage === "yes";
  const isChat = seen.path.endsWith("/chat/completions");
  const count = Number(tokens);
  if (seen.body.stream && !isChat && !whole) {
    const frames = madeOnce(`stream ${count} ${usage}`, () => [...eventsOf(count, hasUsage)]);
    answer.writeHead(200, { "content-type": "text/event-stream" });
    for (const frame of frames) {
      if (answer.destroyed) return;
      if (!answer.write(frame)) await new Promise((resolve) => answer.once("drain", resolve));
    }
    answer.end();
    return;
  }
  const of = isChat ? completionOf : responseOf;
  const body = madeOnce(`${isChat} ${count} ${usage}`, () => JSON.stringify(of(count, hasUsage)));
  answer.writeHead(200, { "content-type": "application/json" });
  answer.end(body);
}

let upstream: ScriptedUpstream;
let watched: WatchedProcess;
let key: string;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script({ kind: "custom", handle: honest });
  watched = await startWatched({
    developerPrompt: "",
    upstreams: {
      main: { protocol: "openai", baseUrl: upstream.baseUrl },
      legacy: { protocol: "chat-completions", baseUrl: upstream.baseUrl },
    },
    models: [
      chat("main", { upstream: "main", ...large }),
      chat("legacy", { upstream: "legacy", ...large }),
    ],
  });
  ({ key } = await watched.account());
});

afterAll(async () => {
  await watched?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

async function ask(path: string, body: object, idempotencyKey?: string) {
  const answer = await fetch(`${watched.baseUrl}${path}`, {
    method: "POST",
    body: JSON.stringify({ top_logprobs: 20, ...body }),
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(idempotencyKey ? { "idempotency-key": idempotencyKey } : {}),
    },
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** The longest time that the event loop was blocked, in ms. The least of some rounds. */
async function keptMs(work: () => Promise<unknown>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds && leastMs > mostMs / 2; round++) {
    await watched.worstDelayMs();
    await work();
    leastMs = Math.min(leastMs, await watched.worstDelayMs());
  }
  return leastMs;
}

function dataIn(stream: string): Record<string, unknown>[] {
  return stream
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
}

const responses = { model: "main", input: "Hi" };
const messages = [{ role: "user", content: "Hi" }];
/** 26 MB. */
const many = { tokens: "16000" };
const last = tokenAt(15_999);
/** Each of the last four events of such a stream has 10 MB. */
const streamed = { tokens: "6000" };
const lastStreamed = tokenAt(5_999);

describe("an answer of 26 MB keeps the event loop for less than 50 ms", () => {
  const within = () => mostMs * slowness();
  // Threads and code are ready once, for all accounts.
  beforeAll(async () => {
    await ask("/responses", { ...responses, metadata: { tokens: "2000" } });
    const body = { model: "legacy", messages, metadata: { tokens: "2000" } };
    await ask("/chat/completions", body);
    await ask("/responses", { ...responses, stream: true, metadata: { tokens: "2000" } });
  });

  test.for(["yes", "no"])("as JSON, with usage: %s", async (usage) => {
    const metadata = { ...many, usage };
    let text = "";
    const ms = await keptMs(async () => {
      text = (await ask("/responses", { ...responses, metadata })).text;
    });
    const { output, usage: told } = JSON.parse(text);
    const { logprobs } = output[0].content[0];
    expect(logprobs).toHaveLength(16_000);
    expect(logprobs.at(-1)).toEqual(last);
    expect(told.estimated).toBe(usage === "yes" ? undefined : true);
    expect(told.costUsdMicros).toBeGreaterThan(0);
    expect(ms).toBeLessThan(within());
  });

  test.for([
    ["translated", "main"],
    ["as it is", "legacy"],
  ])("as a chat completion, %s", async ([, model]) => {
    let text = "";
    const ms = await keptMs(async () => {
      const body = { model, messages, logprobs: true, metadata: many };
      text = (await ask("/chat/completions", body)).text;
    });
    const [choice] = JSON.parse(text).choices;
    expect(choice.logprobs.content).toHaveLength(16_000);
    expect(choice.logprobs.content.at(-1)).toEqual(last);
    expect(ms).toBeLessThan(within());
  });

  test.for(["yes", "no"])("as a stream, with usage: %s", async (usage) => {
    const metadata = { ...streamed, usage };
    let text = "";
    const ms = await keptMs(async () => {
      text = (await ask("/responses", { ...responses, stream: true, metadata })).text;
    });
    const events = dataIn(text);
    const done = events.find(({ type }) => type === "response.output_text.done");
    expect(done).toMatchObject({ logprobs: { length: 6_000 } });
    // biome-ignore lint/suspicious/noExplicitAny: an answer of the API.
    const { response } = events.at(-1) as any;
    expect(response.output[0].content[0].logprobs.at(-1)).toEqual(lastStreamed);
    expect(response.usage.estimated).toBe(usage === "yes" ? undefined : true);
    expect(response.usage.costUsdMicros).toBeGreaterThan(0);
    expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
    expect(ms).toBeLessThan(within());
  });

  test("that came whole for a caller who wants a stream", async () => {
    const metadata = { ...many, whole: "yes" };
    let text = "";
    const ms = await keptMs(async () => {
      text = (await ask("/responses", { ...responses, stream: true, metadata })).text;
    });
    // biome-ignore lint/suspicious/noExplicitAny: an answer of the API.
    const { response } = dataIn(text).at(-1) as any;
    expect(response.output[0].content[0].logprobs.at(-1)).toEqual(last);
    expect(ms).toBeLessThan(within());
  });
});

test("a stop sequence cuts the log probabilities of a large answer with its text", async () => {
  upstream.next({
    kind: "custom",
    handle(_seen, answer) {
      const whole = responseOf(2_000, true);
      const part = whole.output[0]?.content[0];
      if (part) part.text = `${textOf(1_000)} STOP${textOf(999)}`;
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify(whole));
    },
  });
  const { text } = await ask("/chat/completions", {
    ...{ model: "main", messages, logprobs: true, stop: " STOP", metadata: many },
  });
  const [choice] = JSON.parse(text).choices;
  expect(choice.message.content).toBe(textOf(1_000));
  expect(choice.logprobs.content.length).toBeGreaterThan(992);
  expect(choice.logprobs.content.length).toBeLessThanOrEqual(1_000);
});

test("what callers do not see of a chat completion they do not see of a large one", async () => {
  const body = { model: "legacy", messages, logprobs: true, metadata: { tokens: "1000" } };
  const { text } = await ask("/chat/completions", body);
  expect(text).not.toContain("secret");
});

describe("answers of 7 MB that are asked for again as streams", () => {
  const keys = Array.from({ length: 6 }, (_, at) => `kept-${at}`);
  const asked = [
    ["/responses", { ...responses, metadata: { tokens: "4000" } }],
    ["/chat/completions", { model: "legacy", messages, metadata: { tokens: "4000" } }],
  ] as const;

  test.for(asked)(
    "of %s keep the event loop for less than 50 ms",
    { timeout: 240_000 },
    async ([path, body]) => {
      for (const name of keys) {
        const first = await ask(path, body, name + path);
        expect(first.status).toBe(200);
        expect(first.text.length).toBeGreaterThan(6_000_000);
      }
      let answers: Awaited<ReturnType<typeof ask>>[] = [];
      const ms = await keptMs(async () => {
        answers = await Promise.all(
          keys.map((name) => ask(path, { ...body, stream: true }, name + path)),
        );
      });
      for (const { status, headers, text } of answers) {
        expect(status).toBe(200);
        expect(headers.get("idempotency-replayed")).toBe("true");
        expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
      }
      expect(ms).toBeLessThan(mostMs * slowness());
    },
  );

  test("keep no other account waiting", async () => {
    const other = (await watched.account()).key;
    const [path, body] = asked[0];
    const many = Promise.all(keys.map((name) => ask(path, { ...body, stream: true }, name + path)));
    await promptly(1_000, async () => {
      const headers = { authorization: `Bearer ${other}` };
      const models = await fetch(`${watched.baseUrl}/models`, { headers });
      await models.arrayBuffer();
    });
    expect(new Set((await many).map(({ status }) => status))).toEqual(new Set([200]));
  });
});
