import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// Upstreams that report half of their usage, show text outside of any item, or lose their caller before any report.

ownWorldOnly();
const roomy = { maxInputTokens: 100_000, maxOutputTokens: 60_000 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("roomy", roomy),
      chat("roomy-legacy", { ...roomy, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const [inputPrice, outputPrice] = [
  pricing.inputUsdMicrosPerMillionTokens / 1_000_000,
  pricing.outputUsdMicrosPerMillionTokens / 1_000_000,
];
const words = 300;
const said = " sea".repeat(words);
const item = { type: "message", role: "assistant", content: [{ type: "output_text", text: said }] };
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);
const messages = [{ role: "user", content: "Hi" }];

/** A way to ask for an answer with this usage, in the names of Responses, and the upstream's answer. */
interface Way {
  name: string;
  path: string;
  body: object;
  events?: (usage: object) => Record<string, unknown>[];
  json?: (usage: object, output?: unknown[]) => object;
}
const response = { id: "r", object: "response", created_at: 1, model: "up" };
const completed = (usage: object) => [
  { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
  { type: "response.output_text.delta", item_id: "m", delta: said },
  { type: "response.completed", response: { ...response, status: "completed", usage } },
];
const chunk = (choice: object, more = {}) => ({
  ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
  choices: [{ index: 0, delta: {}, ...choice }],
  ...more,
});
const inChat = (usage: object) =>
  JSON.parse(
    JSON.stringify(usage)
      .replace("input_tokens", "prompt_tokens")
      .replace("output_tokens", "completion_tokens"),
  );
const ways: Way[] = [
  {
    ...{ name: "a stream of Responses", path: "/responses", body: { model: "roomy", input: "Hi" } },
    events: completed,
  },
  {
    ...{ name: "Responses as JSON", path: "/responses", body: { model: "roomy", input: "Hi" } },
    json: (usage) => ({ ...response, status: "completed", output: [item], usage }),
  },
  {
    ...{ name: "a compaction", path: "/responses/compact", body: { model: "roomy", input: "Hi" } },
    json: (usage, output = [item]) => ({
      ...{ id: "r", object: "response.compaction", created_at: 1, output, usage },
    }),
  },
  {
    ...{ name: "translated chat", path: "/chat/completions", body: { model: "roomy", messages } },
    events: completed,
  },
  {
    ...{ name: "a stream of chat", path: "/chat/completions" },
    body: { model: "roomy-legacy", messages },
    events: (usage) => [
      chunk({ delta: { content: said } }),
      chunk({ finish_reason: "stop" }, { usage: inChat(usage) }),
    ],
  },
  {
    ...{ name: "chat as JSON", path: "/chat/completions" },
    body: { model: "roomy-legacy", messages },
    json: (usage) => ({
      ...{ id: "c", object: "chat.completion", created: 1, model: "up", usage: inChat(usage) },
      choices: [{ index: 0, message: { content: said }, finish_reason: "stop" }],
    }),
  },
];

/** Sends the request, and gives its charge. */
async function costOf({ path, body, events, json }: Way, usage: object, output?: unknown[]) {
  const caller = await world.caller();
  if (events) world.play({ kind: "events", events: events(usage) });
  else world.play({ kind: "json", body: json?.(usage, output) });
  if (events) await caller.stream(path, body);
  else expect((await caller.post(path, body)).status).toBe(200);
  return spent(caller);
}

describe.for(ways)("$name", (way) => {
  test.for([
    { input_tokens: 10, total_tokens: 10 },
    { input_tokens: 10, output_tokens: null, total_tokens: 10 },
  ])("an output of which nothing is said is counted: %j", async (usage) => {
    expect(await costOf(way, usage)).toBeGreaterThanOrEqual(words * outputPrice);
  });

  test("one that is said to be nothing costs nothing", async () => {
    const usage = { input_tokens: 10, output_tokens: 0, total_tokens: 10 };
    expect(await costOf(way, usage)).toBe(10 * inputPrice);
  });
});

test.for([
  ["text", [said]],
  ["a list", [[item]]],
] as const)(
  "what stands in the place of a compaction's item is counted: %s",
  async ([, output]) => {
    const way = ways.find(({ path }) => path === "/responses/compact") as Way;
    expect(await costOf(way, {}, [...output])).toBeGreaterThanOrEqual(words * outputPrice);
  },
);

describe("input under the name of sealed state is what a model reads, and costs that where a caller leaves at the first word", () => {
  // Digits have many tokens for their bytes. Sealed state counts few.
  const digits = Array.from({ length: 4_000 }, (_, at) => `${(at * 7919) % 1_000} `).join("");
  const schema = { type: "object", properties: {}, encrypted_content: digits };
  const begun = { ...response, status: "in_progress", output: [] };
  const asked: [name: string, path: string, body: object, events: string[]][] = [
    [
      "responses",
      "/responses",
      {
        model: "roomy",
        input: "Hi",
        tools: [{ type: "function", name: "f", parameters: schema, strict: false }],
      },
      [
        `data: ${JSON.stringify({ type: "response.created", response: begun })}\n\n`,
        `data: ${JSON.stringify({ type: "response.output_text.delta", item_id: "m", delta: "sea" })}\n\n`,
      ],
    ],
    [
      "chat",
      "/chat/completions",
      {
        model: "roomy-legacy",
        messages,
        tools: [{ type: "function", function: { name: "f", parameters: schema } }],
      },
      [`data: ${JSON.stringify(chunk({ delta: { content: "sea" } }))}\n\n`],
    ],
  ];
  test.for(asked)("%s", async ([, path, body, events]) => {
    const caller = await world.caller();
    const seen = world.play({
      kind: "custom",
      handle(_seen, answer) {
        answer.writeHead(200, { "content-type": "text/event-stream" });
        for (const event of events) answer.write(event);
      },
    });
    const stream = await caller.open(path, body);
    await stream.until(({ data }) => data.includes("sea"));
    stream.leave();
    await seen[0]?.over;
    expect(seen[0]?.raw.toString()).toContain(digits);
    // Each number is at least one token.
    expect(await spent(caller)).toBeGreaterThanOrEqual(0.9 * 4_000 * inputPrice);
  });
});
