import { afterAll, describe, expect, test } from "vitest";
import type { Behaviour } from "../../../../test/support/scripted-upstream.ts";
import { testRequest } from "../../../../test/support/text-requests.ts";
import { startUpstreamWorld } from "../../../../test/support/upstream-world.ts";
import type { UpstreamRequest } from "../port.ts";

// An upstream that goes past its bound. No more than the bound goes to the caller before the upstream has reported its usage.

const world = await startUpstreamWorld();
afterAll(() => world[Symbol.asyncDispose]());

const word = " word";
const bound = 200;
/** The output that may go out beyond the bound: that between two counts. */
const slack = 64;
const words = Array<string>(3_000).fill(word);
/** Each word is a token. This count does not need the thread of tokens. */
const countOf = (text: string) => Math.ceil(text.length / word.length);
const outputBound = { tokens: bound, count: async (texts: string[]) => countOf(texts.join("")) };

type Events = Extract<Behaviour, { kind: "events" }>["events"];
type Usage = { input: number; output: number } | undefined;
interface Way {
  name: string;
  operation: "responses" | "chat";
  protocol: "OPENAI" | "CHAT_COMPLETIONS";
  says(deltas: readonly string[], kind: Kind): Events;
  ends(usage: Usage): Events;
}
type Kind = "text" | "arguments" | "reasoning";

const response = { id: "r", object: "response", created_at: 1, model: "up" };
const typesOf: Record<Kind, string> = {
  text: "output_text",
  arguments: "function_call_arguments",
  reasoning: "reasoning_text",
};
const begunCall = {
  ...{ type: "response.output_item.added", output_index: 0 },
  item: { type: "function_call", id: "m", call_id: "c", name: "f", arguments: "" },
};
const responsesSay: Way["says"] = (deltas, kind) => [
  { type: "response.created", response },
  ...(kind === "arguments" ? [begunCall] : []),
  ...deltas.map((delta) => ({
    ...{ type: `response.${typesOf[kind]}.delta`, item_id: "m", output_index: 0 },
    ...{ content_index: 0, delta },
  })),
];
const responsesEnd: Way["ends"] = (usage) => {
  const told = usage && { input_tokens: usage.input, output_tokens: usage.output };
  const ended = { ...response, status: "completed", usage: told ?? null };
  return [{ type: "response.completed", response: ended }];
};
const begunPiece = {
  ...{ index: 0, id: "c", type: "function" },
  function: { name: "f", arguments: "" },
};
const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
const deltaOf = (text: string, kind: Kind) => {
  if (kind === "text") return { content: text };
  if (kind === "reasoning") return { reasoning_content: text };
  return { tool_calls: [{ index: 0, function: { arguments: text } }] };
};
const choice = (delta: object, reason: string | null) => ({
  ...chunk,
  choices: [{ index: 0, delta, finish_reason: reason }],
});
const ways: Way[] = [
  {
    ...{ name: "a response", operation: "responses", protocol: "OPENAI" },
    ...{ says: responsesSay, ends: responsesEnd },
  },
  {
    ...{ name: "chat, translated", operation: "chat", protocol: "OPENAI" },
    ...{ says: responsesSay, ends: responsesEnd },
  },
  {
    ...{ name: "chat, native", operation: "chat", protocol: "CHAT_COMPLETIONS" },
    says: (deltas, kind) => [
      ...(kind === "arguments" ? [choice({ tool_calls: [begunPiece] }, null)] : []),
      ...deltas.map((text) => choice(deltaOf(text, kind), null)),
    ],
    ends: (usage) => {
      const told = usage && { prompt_tokens: usage.input, completion_tokens: usage.output };
      return [choice({}, "stop"), ...(told ? [{ ...chunk, choices: [], usage: told }] : [])];
    },
  },
];
const kinds: Kind[] = ["text", "arguments", "reasoning"];

const requestTo = (way: Way, changes: Partial<UpstreamRequest> = {}) =>
  testRequest(way.operation, [world.at(way.protocol)], {
    ...{ maxOutputTokens: bound, outputBound },
    ...changes,
  });

/** All generated text that went out, and how the answer ended. */
async function streamed(way: Way, events: Events, done = true) {
  world.server.next({ kind: "events", events, done });
  const { events: out, data } = await world.stream(requestTo(way));
  const said = data.map(({ type, delta, choices }) => {
    if (`${type}`.endsWith(".delta")) return `${delta}`;
    const { content, reasoning_content, tool_calls } = choices?.[0]?.delta ?? {};
    return `${content ?? ""}${reasoning_content ?? ""}${tool_calls?.[0]?.function.arguments ?? ""}`;
  });
  return { tokens: countOf(said.join("")), last: out.at(-1), wire: JSON.stringify(data) };
}

describe.for(ways)("$name", (way) => {
  test.for(kinds)("gives away the bound alone where nothing is told: %s", async (kind) => {
    for (const end of [way.ends(undefined), way.ends({ input: 10, output: 3_000 })]) {
      for (const pieces of [words, words.slice(0, bound + 40)]) {
        const { tokens, last } = await streamed(way, [...way.says(pieces, kind), ...end]);
        expect(tokens).toBeGreaterThanOrEqual(bound);
        expect(tokens).toBeLessThanOrEqual(bound + slack);
        expect(last).toMatchObject({ ending: "incomplete", isCut: true });
      }
    }
  });

  test.for(kinds)("gives all where upstream says that it is within the bound: %s", async (kind) => {
    const more = words.slice(0, bound + 40);
    const usage = { input: 10, output: bound };
    const { tokens, last } = await streamed(way, [...way.says(more, kind), ...way.ends(usage)]);
    expect(tokens).toBe(more.length);
    expect(last).toMatchObject({ ending: "completed", usage: { outputTokens: bound } });
  });

  test("of what upstream broke off, and of what comes in one piece, the bound", async () => {
    const broken = [...way.says(words.slice(0, bound + 40), "text"), "data: "];
    const whole = way.says([words.join("")], "text");
    for (const events of [broken, whole]) {
      const { tokens, last } = await streamed(way, events, false);
      expect(tokens).toBeGreaterThanOrEqual(bound);
      expect(tokens).toBeLessThanOrEqual(bound + slack);
      expect(last).toMatchObject({ ending: "incomplete", isCut: true });
    }
  });

  test("of a whole answer the bound, where it does not say that it is within it", async () => {
    const isNative = way.protocol === "CHAT_COMPLETIONS";
    const answered = async (usage: object | undefined) => {
      const text = words.slice(0, bound + 40).join("");
      const message = { role: "assistant", content: text };
      const content = [{ type: "output_text", text }];
      const item = { type: "message", role: "assistant", content };
      const native = { id: "c", choices: [{ index: 0, message, finish_reason: "stop" }] };
      const body = isNative ? native : { ...response, status: "completed", output: [item] };
      world.server.next({ kind: "json", body: { ...body, ...(usage ? { usage } : {}) } });
      return (await world.json(requestTo(way))).answer;
    };
    const usageOf = (output: number) =>
      isNative
        ? { prompt_tokens: 10, completion_tokens: output }
        : { input_tokens: 10, output_tokens: output };
    for (const usage of [undefined, usageOf(bound + 40)]) {
      const { isCut, outputText } = await answered(usage);
      expect(isCut).toBe(true);
      expect(countOf(outputText)).toBe(bound);
    }
    const { isCut, outputText } = await answered(usageOf(bound));
    expect(isCut).toBe(false);
    expect(countOf(outputText)).toBe(bound + 40);
  });
});
