import { pricing } from "../e2e/catalog.ts";

/** USD micros of a token of output. */
export const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
/** 300 words of one token each. */
export const words = "sea ".repeat(300).trim();
/** The least charge for these words, in USD micros. */
export const least = 0.9 * 300 * outputPrice;

/** An event of a stream of Responses. */
export const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const response = { id: "r", object: "response", created_at: 1, model: "up" };
/** The first event of such a stream. */
export const created = event("response.created", { response: { ...response, output: [] } });
/** The last one. It reports no usage. */
export const completed = (more: object = {}) =>
  event("response.completed", { response: { ...response, status: "completed", ...more } });
/** The place of a piece of text. */
export const at = { output_index: 0, content_index: 0, item_id: "i" };
const done = (item: object) => event("response.output_item.done", { output_index: 0, item });
/** A message with this text, as an item. */
export const said = (text: string) => ({
  type: "message",
  content: [{ type: "output_text", text }],
});
const called = { type: "function_call", call_id: "c", name: "f", arguments: `"${words}"` };

/** Places of a stream of Responses that may hold the words, each with its events. */
export const ofResponses: Record<string, string[]> = {
  deltas: [event("response.output_text.delta", { ...at, delta: words })],
  "a done alone": [event("response.output_text.done", { ...at, text: words })],
  refusals: [event("response.refusal.delta", { ...at, delta: words })],
  summaries: [event("response.reasoning_summary_text.delta", { ...at, delta: words })],
  reasoning: [event("response.reasoning_text.delta", { ...at, delta: words })],
  "an item of reasoning": [done({ type: "reasoning", summary: [{ text: words }] })],
  "a call's item": [done(called)],
  "arguments behind an item": [
    event("response.output_item.added", { output_index: 0, item: { ...called, arguments: "" } }),
    event("response.function_call_arguments.delta", { ...at, delta: words }),
  ],
  "an unknown event": [event("response.other.delta", { ...at, delta: words })],
  "an unknown item": [done({ type: "other", note: words })],
};
