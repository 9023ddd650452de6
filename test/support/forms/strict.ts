import { expect } from "vitest";
import type { Said } from "./form.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers and events of every shape.
type Json = any;

/** The content that a strict client builds from the chunks of a chat completion. Fails where they are not in OpenAI's shape. */
export function saidByChunks(chunks: readonly Json[]): Said & { usage: Json } {
  let text = "";
  let usage: Json;
  const calls: [string, string][] = [];
  const reasons: string[] = [];
  const [first] = chunks;
  expect(first.choices[0].delta.role).toBe("assistant");
  for (const chunk of chunks) {
    expect(chunk).toMatchObject({
      id: first.id,
      object: "chat.completion.chunk",
      created: first.created,
    });
    expect(chunk.id).not.toBe("");
    expect(chunk.created).toBeGreaterThan(0);
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason: reason, index } of chunk.choices) {
      expect(index).toBe(0);
      expect(reasons).toEqual([]);
      text += delta.content ?? "";
      for (const piece of delta.tool_calls ?? []) takePiece(piece, calls);
      expect(reason === null || (typeof reason === "string" && reason !== "")).toBe(true);
      if (reason !== null) reasons.push(reason);
    }
  }
  expect(reasons).toHaveLength(1);
  return { text, calls, finish: reasons[0] as Said["finish"], usage };
}

function takePiece(piece: Json, calls: [string, string][]): void {
  const {
    index,
    id,
    type,
    function: { name, arguments: args = "" },
  } = piece;
  expect(Number.isInteger(index)).toBe(true);
  expect(typeof args).toBe("string");
  const call = calls[index];
  if (call) {
    call[1] += args;
    return;
  }
  expect(index).toBe(calls.length);
  expect(id).toMatch(/./);
  expect(type).toBe("function");
  expect(name).toMatch(/./);
  calls.push([name, args]);
}

/** The same from a whole completion. */
export function saidByCompletion(completion: Json): Said & { usage: Json } {
  const { id, created, choices, usage } = completion;
  expect(id).toMatch(/./);
  expect(created).toBeGreaterThan(0);
  const [{ message, finish_reason: finish }] = choices;
  expect(message.role).toBe("assistant");
  const ids = new Set();
  const calls = (message.tool_calls ?? []).map((call: Json) => {
    expect(call).toMatchObject({ id: expect.stringMatching(/./), type: "function" });
    ids.add(call.id);
    expect(typeof call.function.arguments).toBe("string");
    return [call.function.name, call.function.arguments];
  });
  expect(ids.size).toBe(calls.length);
  return { text: message.content ?? "", calls, finish, usage };
}

/** The same from a response object. */
export function saidByResponse({ output, usage, status }: Json): Said & { usage: Json } {
  let text = "";
  const calls: [string, string][] = [];
  for (const item of output) {
    expect(item).toMatchObject({ id: expect.stringMatching(/./), type: expect.any(String) });
    if (item.type === "message") text += item.content.map((part: Json) => part.text).join("");
    if (item.type !== "function_call") continue;
    expect(typeof item.arguments).toBe("string");
    expect(item.call_id).toMatch(/./);
    calls.push([item.name, item.arguments]);
  }
  const finish = status === "incomplete" ? "length" : calls.length > 0 ? "tool_calls" : "stop";
  return { text, calls, finish, usage };
}

/** The same from a Responses stream. Its deltas must make the content of its last event. */
export function saidByEvents(events: readonly Json[]): Said & { usage: Json } {
  const items: { id: string; said: string }[] = [];
  for (const [at, event] of events.entries()) {
    expect(event.sequence_number).toBe(at);
    const item = items[event.output_index];
    if (event.type === "response.output_item.added") {
      expect(event.output_index).toBe(items.length);
      // Like the official client: the item's first text, followed by its deltas.
      items.push({ id: event.item.id, said: event.item.arguments ?? "" });
    } else if (event.output_index !== undefined) {
      expect(item?.id).toBe(event.item_id ?? event.item.id);
    }
    if (item && /(output_text|arguments)\.delta$/.test(event.type)) item.said += event.delta;
    if (event.type === "response.function_call_arguments.done")
      expect(event.arguments).toBe(item?.said);
    if (event.item) expect(typeof (event.item.arguments ?? "")).toBe("string");
  }
  const { response } = events.at(-1);
  const shown = response.output.map((item: Json) => ({
    id: item.id,
    said: item.arguments ?? item.content?.map((part: Json) => part.text).join("") ?? "",
  }));
  expect(shown).toEqual(items);
  return saidByResponse(response);
}
