import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { AnswerForm } from "../request/parse.ts";
import { dataFrame, typedFrame } from "../upstream/frame.ts";
import type { TextOperation } from "../upstream/port.ts";
import { itemEvents } from "../upstream/responses/item-events.ts";
import { doneFrame } from "./frames.ts";

/** A kept answer as the event stream that it would have been, `[DONE]` included; each text comes as one delta. */
export function eventsOfAnswer(
  operation: TextOperation,
  form: AnswerForm,
  answer: Uint8Array,
): Uint8Array {
  const value: unknown = JSON.parse(Buffer.from(answer).toString());
  const body = isJsonObject(value) ? value : {};
  const frames =
    operation === "chat" ? chatFrames(body, form === "events+usage") : [...responseFrames(body)];
  return Buffer.concat([...frames, doneFrame]);
}

function* responseFrames(response: JsonObject): Iterable<Uint8Array> {
  let sequence = 0;
  const frame = (event: JsonObject) => typedFrame({ ...event, sequence_number: sequence++ });
  const begun: JsonObject = {
    ...response,
    status: "in_progress",
    completed_at: null,
    incomplete_details: null,
    output: [],
    usage: null,
  };
  yield frame({ type: "response.created", response: begun });
  yield frame({ type: "response.in_progress", response: begun });
  const output = Array.isArray(response.output) ? response.output.filter(isJsonObject) : [];
  for (const [index, item] of output.entries()) {
    for (const event of itemEvents(item, index)) yield frame(event);
  }
  const ending = response.status === "incomplete" ? "incomplete" : "completed";
  yield frame({ type: `response.${ending}`, response });
}

function chatFrames(completion: JsonObject, withUsage: boolean): Uint8Array[] {
  const { choices, usage, ...rest } = completion;
  const chunk = (fields: JsonObject) =>
    dataFrame({ ...rest, object: "chat.completion.chunk", ...fields });
  const choice = Array.isArray(choices) && isJsonObject(choices[0]) ? choices[0] : {};
  const { role: _role, content, tool_calls: calls, ...message } = objectOf(choice.message);
  const delta = (fields: JsonObject, finish: JsonValue = null, logprobs: JsonValue = null) =>
    chunk({ choices: [{ index: 0, delta: fields, logprobs, finish_reason: finish }] });
  const frames = [delta({ role: "assistant", content: "", refusal: null })];
  const others = Object.entries(message).filter(([, value]) => value !== null);
  if (others.length > 0) frames.push(delta(Object.fromEntries(others)));
  if (typeof content === "string" && content !== "") {
    frames.push(delta({ content }, null, choice.logprobs ?? null));
  }
  if (Array.isArray(calls) && calls.length > 0) {
    const indexed = calls.filter(isJsonObject).map((call, index) => ({ index, ...call }));
    frames.push(delta({ tool_calls: indexed }));
  }
  frames.push(delta({}, choice.finish_reason ?? "stop"));
  if (withUsage) frames.push(chunk({ choices: [], usage: usage ?? null }));
  return frames;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
