import type { Behaviour } from "../scripted-behaviours.ts";
import type { SeenRequest } from "../scripted-upstream.ts";

/** The content that a client must build from an answer, in any form of its upstream. */
export interface Said {
  text: string;
  /** Name, and arguments as JSON text. */
  calls: readonly (readonly [name: string, args: string])[];
  /** By the words of Chat Completions. */
  finish: "stop" | "tool_calls" | "length";
}

/** A form in which real servers give their answers. */
export interface AnswerForm {
  /** The words by which a caller asks for this form. */
  name: string;
  /** The protocol of the upstream. */
  upstream: "chat" | "responses";
  /** The events that the upstream sends where a stream was requested. */
  events: readonly (Record<string, unknown> | string)[];
  /** Does the upstream's stream end without `[DONE]`? */
  isUndone?: boolean;
  /** The same answer where JSON was requested. */
  json: Record<string, unknown>;
  says: Said;
}

/** The upstream's behaviour for a request in this form. */
export function playForm(form: AnswerForm, { body }: Pick<SeenRequest, "body">): Behaviour {
  if (body?.stream !== true) return { kind: "json", body: form.json };
  return { kind: "events", events: form.events, done: !form.isUndone };
}

/** The form that a request names by its last words. */
export function formAsked(
  forms: readonly AnswerForm[],
  { body }: Pick<SeenRequest, "body">,
): AnswerForm | undefined {
  const asked = body?.messages ?? body?.input;
  const content = typeof asked === "string" ? asked : asked?.at(-1)?.content;
  const words = typeof content === "string" ? content : content?.at(-1)?.text;
  return forms.find(({ name }) => name === words);
}

/** Usage of 1,000 tokens in and 10 out. */
export const chatUsage = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };

const head = { id: "up-1", object: "chat.completion.chunk", created: 1_760_000_000, model: "up" };

/** A chunk with a delta, or without one where it is undefined. */
export function chunk(delta?: object | null, reason: unknown = null, more: object = {}) {
  const said = delta === undefined ? {} : { delta };
  return { ...head, choices: [{ index: 0, ...said, finish_reason: reason, ...more }] };
}

/** The chunk with the usage, and no choice. */
export const used = { ...head, choices: [], usage: chatUsage };
/** The chunk that begins a message. */
export const begun = chunk({ role: "assistant", content: "" });

/** A whole completion. */
export function completion(message: object, reason: unknown, usage: object = chatUsage) {
  const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason: reason }];
  return { ...head, object: "chat.completion", choices, usage };
}

/** A piece of a call in the correct form. */
export function piece(index: number, args: unknown, named?: { id: string; name: string }) {
  if (!named) return { index, function: { arguments: args } };
  const { id, name } = named;
  return { index, id, type: "function", function: { name, arguments: args } };
}

/** Arguments of calls in several forms. */
export const inParis = { city: "Paris" };
