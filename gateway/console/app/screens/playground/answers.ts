// Asks for the next answer of a conversation, and reads it while it comes.

import { ApiError, call, open } from "../../api.ts";
import { eventsOf } from "../../sse.ts";
import type { Generation } from "../../types.ts";
import { Completion, type Item, type Usage, type Whole } from "./completions.ts";

export interface FunctionCall {
  call_id: string;
  name: string;
  arguments: string;
}

export interface Answer {
  state: "running" | "completed" | "incomplete" | "stopped" | "failed";
  id?: string;
  reasoning: string;
  text: string;
  calls: FunctionCall[];
  /** The answer's items, unchanged. The next request contains them. */
  output: unknown[];
  usage?: Usage;
  costUsdMicros?: number;
  firstMs?: number;
  durationMs?: number;
  error?: unknown;
}

/** The error of an answer whose connection broke. It may go on at the service, which keeps a record of it. */
export function broken(): ApiError {
  const message = "The connection broke while the answer came. What had come stays here.";
  return new ApiError(0, { message, code: "answer_broke_off" }, null);
}

export interface Asked {
  method: "POST";
  signal: AbortSignal;
}

export async function respond(
  body: Record<string, unknown>,
  asked: Asked,
  answer: Answer,
  took: () => number,
  show: () => void,
): Promise<void> {
  if (!body.stream) return finish(answer, await call<Whole>("/responses", { ...asked, body }));
  for await (const { data } of eventsOf(await open("/responses", { ...asked, body }))) {
    if (data === "[DONE]") continue;
    take(answer, JSON.parse(data), took());
    show();
  }
}

export async function complete(
  body: Record<string, unknown>,
  asked: Asked,
  answer: Answer,
  took: () => number,
  show: () => void,
): Promise<void> {
  const path = "/chat/completions";
  const completion = new Completion();
  if (!body.stream) completion.take(await call<object>(path, { ...asked, body }));
  else {
    for await (const { data } of eventsOf(await open(path, { ...asked, body }))) {
      if (data === "[DONE]") continue;
      completion.take(JSON.parse(data));
      const { id, text, reasoning } = completion;
      if (text !== "" || reasoning !== "") answer.firstMs ??= took();
      Object.assign(answer, { id, text, reasoning });
      show();
    }
  }
  answer.reasoning = completion.reasoning;
  const whole = completion.whole();
  if (whole) finish(answer, whole);
}

type Event =
  | { type: "response.created"; response: Whole }
  | { type: "response.output_text.delta"; delta: string }
  | {
      type: "response.reasoning_summary_text.delta" | "response.reasoning_text.delta";
      delta: string;
    }
  | { type: "response.completed" | "response.incomplete" | "response.failed"; response: Whole }
  | { type: "error"; message?: string; code?: string; error?: Record<string, unknown> }
  | { type: "" };

function take(answer: Answer, event: Event, ms: number): void {
  switch (event.type) {
    case "response.created":
      answer.id = event.response.id;
      return;
    case "response.output_text.delta":
      answer.firstMs ??= ms;
      answer.text += event.delta;
      return;
    case "response.reasoning_summary_text.delta":
    case "response.reasoning_text.delta":
      answer.firstMs ??= ms;
      answer.reasoning += event.delta;
      return;
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      finish(answer, event.response);
      return;
    case "error":
      throw new ApiError(0, event.error ?? { message: event.message, code: event.code }, null);
    default:
  }
}

/** The whole answer repeats all deltas, and has some fields that no delta has. */
function finish(answer: Answer, whole: Whole): void {
  answer.id = whole.id;
  answer.output = whole.output;
  if (whole.usage) {
    answer.usage = whole.usage;
    if (whole.usage.costUsdMicros !== undefined) answer.costUsdMicros = whole.usage.costUsdMicros;
  }
  const text = whole.output.flatMap((item) => (item.type === "message" ? textsOf(item) : []));
  if (text.length > 0) answer.text = text.join("\n\n");
  const reasoning = whole.output.flatMap((item) =>
    item.type === "reasoning"
      ? [...(item.summary ?? []).map((one) => one.text ?? ""), ...textsOf(item)]
      : [],
  );
  if (reasoning.join("") !== "") answer.reasoning = reasoning.join("\n\n");
  answer.calls = whole.output.flatMap((item) =>
    item.type === "function_call"
      ? [{ call_id: item.call_id ?? "", name: item.name ?? "", arguments: item.arguments ?? "" }]
      : [],
  );
  if (whole.status === "failed") {
    throw new ApiError(0, { message: "The model failed.", ...whole.error }, null);
  }
  answer.state = whole.status === "incomplete" ? "incomplete" : "completed";
}

const textsOf = (item: Item) => (item.content ?? []).map((part) => part.text ?? "");

/** Pauses before each time that the ledger is asked for the charge of an answer. */
const costPausesMs = [400, 1_200, 3_000];

export async function costOf(id: string): Promise<number | undefined> {
  for (const pauseMs of costPausesMs) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const found = await call<{ data: Generation }>(`/generation?id=${id}`).catch(() => undefined);
    if (found) return found.data.costUsdMicros;
  }
  return undefined;
}
