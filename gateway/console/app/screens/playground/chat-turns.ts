import { signal } from "@preact/signals";
import { ApiError, Cancelled, call, open } from "../../api.ts";
import { session } from "../../session.ts";
import { eventsOf } from "../../sse.ts";
import type { Generation } from "../../types.ts";
import { Completion, completionBody, type Item, type Usage, type Whole } from "./completions.ts";
import {
  forgetConversation,
  keepConversation,
  type keptConversations,
  turnsOf,
} from "./kept-conversations.ts";

export interface Picture {
  name: string;
  /** The address that is sent. */
  dataUrl: string;
  /** The address that the page may show. */
  blobUrl: string;
}

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

/** The reader's message (or the results of functions that the model called), and the answer. */
export interface Turn {
  key: number;
  text: string;
  pictures: Picture[];
  /** Items of the request, in the form that is sent. */
  input: unknown[];
  answer: Answer;
}

/** The conversation, which stays while the page is open. */
export const turns = signal<readonly Turn[]>([]);
let conversationId: string = crypto.randomUUID();
let running: AbortController | undefined;
let lastKey = 0;

/** Deletes the conversation, also from the browser's store. */
export function clear(): void {
  void forgetConversation(conversationId);
  begin(crypto.randomUUID(), []);
}

/** Begins another conversation. The earlier one stays in the browser's store. */
export function beginAnother(): void {
  begin(crypto.randomUUID(), []);
}

/** Goes on with a conversation of the browser's store. */
export function reopen(kept: NonNullable<typeof keptConversations.value>[number]): void {
  const earlier = turnsOf(kept).map((turn) => {
    lastKey += 1;
    return { ...turn, key: lastKey };
  });
  begin(kept.id, earlier);
}

export function isShown(id: string): boolean {
  return id === conversationId;
}

function begin(id: string, earlier: readonly Turn[]): void {
  running?.abort();
  releasePictures(turns.value);
  conversationId = id;
  turns.value = earlier;
}

// Another key may sign in to this page.
session.subscribe((value) => {
  if (!value) beginAnother();
});

/** Takes a turn and those after it out of the conversation, to say it again. Its images stay usable. */
export function takeBack(key: number): Turn | undefined {
  const place = turns.value.findIndex((turn) => turn.key === key);
  const turn = turns.value[place];
  if (!turn) return undefined;
  releasePictures(turns.value.slice(place + 1));
  turns.value = turns.value.slice(0, place);
  return turn;
}

function releasePictures(those: readonly Turn[]): void {
  for (const { pictures } of those) {
    for (const { blobUrl } of pictures) URL.revokeObjectURL(blobUrl);
  }
}

export function stop(): void {
  running?.abort();
}

/** The items of all turns. A request that continues the conversation begins with them. */
export function history(): unknown[] {
  return turns.value.flatMap(({ input, answer }) => {
    if (answer.output.length > 0) return [...input, ...answer.output];
    // The answer was stopped or broke off. The model gets the text that had come.
    if (answer.text === "") return answer.state === "failed" ? [] : input;
    return [...input, { role: "assistant", content: answer.text }];
  });
}

export function userMessage(text: string, pictures: readonly Picture[]): unknown {
  if (pictures.length === 0) return { role: "user", content: text };
  return {
    role: "user",
    content: [
      { type: "input_text", text },
      ...pictures.map(({ dataUrl }) => ({ type: "input_image", image_url: dataUrl })),
    ],
  };
}

/**
 * Sends the request, a body of `/responses`, and fills the turn with its answer as that comes. `isResponses` false: the model has only
 * Chat Completions.
 */
export async function send(
  body: Record<string, unknown>,
  turn: Pick<Turn, "text" | "pictures" | "input">,
  isResponses: boolean,
): Promise<void> {
  lastKey += 1;
  const key = lastKey;
  const abort = new AbortController();
  running = abort;
  const answer: Answer = { state: "running", reasoning: "", text: "", calls: [], output: [] };
  turns.value = [...turns.value, { ...turn, key, answer }];
  const conversation = conversationId;
  const keepIt = () => {
    if (conversation === conversationId) void keepConversation(conversation, turns.value);
  };
  keepIt();
  const show = frameByFrame(() => {
    turns.value = turns.value.map((one) =>
      one.key === key ? { ...one, answer: { ...answer } } : one,
    );
  });
  const begun = performance.now();
  try {
    const asked = { method: "POST", signal: abort.signal } as const;
    const took = () => performance.now() - begun;
    if (isResponses) await respond(body, asked, answer, took, show);
    else await complete(completionBody(body), asked, answer, took, show);
    // A stream without an end was cut off.
    if (answer.state === "running") throw broken();
  } catch (error) {
    const wasStopped = abort.signal.aborted || error instanceof Cancelled;
    answer.state = wasStopped ? "stopped" : "failed";
    if (!wasStopped) answer.error = error instanceof ApiError ? error : broken();
  }
  answer.durationMs = performance.now() - begun;
  show(keepIt);
  // A stopped answer has no usage, and an upstream may leave it out too. The ledger has the charge.
  if (answer.costUsdMicros === undefined && answer.state !== "failed" && answer.id) {
    const cost = await costOf(answer.id);
    if (cost !== undefined) answer.costUsdMicros = cost;
    show(keepIt);
  }
}

/** The error of an answer whose connection broke. It may go on at the service, which keeps a record of it. */
function broken(): ApiError {
  const message = "The connection broke while the answer came. What had come stays here.";
  return new ApiError(0, { message, code: "answer_broke_off" }, null);
}

interface Asked {
  method: "POST";
  signal: AbortSignal;
}

async function respond(
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

async function complete(
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

/** Changes the page at most once for each frame that the browser shows, however fast an answer comes. */
function frameByFrame(change: () => void): (then?: () => void) => void {
  let isDue = false;
  let last: (() => void) | undefined;
  return (then) => {
    last = then ?? last;
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      change();
      last?.();
      last = undefined;
    });
  };
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

async function costOf(id: string): Promise<number | undefined> {
  for (const pauseMs of costPausesMs) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const found = await call<{ data: Generation }>(`/generation?id=${id}`).catch(() => undefined);
    if (found) return found.data.costUsdMicros;
  }
  return undefined;
}
