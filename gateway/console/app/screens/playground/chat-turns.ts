import { signal } from "@preact/signals";
import { ApiError, Cancelled } from "../../api.ts";
import { session } from "../../session.ts";
import { type Answer, broken, complete, costOf, respond } from "./answers.ts";
import { completionBody } from "./completions.ts";
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
