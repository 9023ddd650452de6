// The state of the conversations of this page. `chat.tsx` and its parts show it.

import { type Signal, signal } from "@preact/signals";
import { ApiError, Cancelled } from "../../api.ts";
import { session } from "../../session.ts";
import { type Answer, broken, complete, costOf, respond } from "./answers.ts";
import { type Attachment, partOf } from "./attachments.tsx";
import { completionBody } from "./completions.ts";
import {
  forgetConversation,
  keepConversation,
  type keptConversations,
  turnsOf,
} from "./kept-conversations.ts";

/** The reader's message (or the results of functions that the model called), and the answer. */
export interface Turn {
  key: number;
  text: string;
  attachments: Attachment[];
  /** Items of the request, in the form that is sent. */
  input: unknown[];
  /** The id of the model that answers. Conversations of an earlier page lack it. */
  model?: string;
  answer: Answer;
}

/** The text and the files of a message, and the items that are sent of it. */
export type Message = Pick<Turn, "text" | "attachments" | "input">;

/** A request of a conversation. */
export interface Ask {
  /** A body of `/responses`. */
  body: Record<string, unknown>;
  /** False: it is sent to Chat Completions. */
  isResponses: boolean;
}

let lastKey = 0;

/** A conversation with one model at a time. It stays while the page is open. */
export class Conversation {
  /** A turn whose answer comes has none of it yet. So what reads all turns works once for each turn. */
  readonly turns: Signal<readonly Turn[]> = signal([]);
  /** The answer that comes, as far as it is shown. */
  readonly growing: Signal<Answer | undefined> = signal(undefined);
  #id: string = crypto.randomUUID();
  #running: AbortController | undefined;

  /** Deletes the conversation, also from the browser's store. */
  clear(): void {
    void forgetConversation(this.#id);
    this.beginAnother();
  }

  /** Begins another conversation. The earlier one stays in the browser's store. */
  beginAnother(): void {
    this.#begin(crypto.randomUUID(), []);
  }

  /** Goes on with a conversation of the browser's store. */
  reopen(kept: NonNullable<typeof keptConversations.value>[number]): void {
    const earlier = turnsOf(kept).map((turn) => {
      lastKey += 1;
      return { ...turn, key: lastKey };
    });
    this.#begin(kept.id, earlier);
  }

  /** Begins with the turns of another conversation, so that two models can go on from one place. */
  follow(other: Conversation): void {
    this.#begin(crypto.randomUUID(), other.turns.value);
  }

  isShown(id: string): boolean {
    return id === this.#id;
  }

  isRunning(): boolean {
    return this.turns.value.some(({ answer }) => answer.state === "running");
  }

  #begin(id: string, earlier: readonly Turn[]): void {
    this.stop();
    const before = this.turns.value;
    this.#id = id;
    this.turns.value = earlier;
    releaseAttachments(before);
  }

  /** Takes a turn and those after it out of the conversation, to say it again. Its files stay usable. */
  takeBack(key: number): Turn | undefined {
    const before = this.turns.value;
    const place = before.findIndex((turn) => turn.key === key);
    const turn = before[place];
    if (!turn) return undefined;
    this.turns.value = before.slice(0, place);
    releaseAttachments(before.slice(place + 1));
    return turn;
  }

  stop(): void {
    this.#running?.abort();
  }

  /** The items of all turns. A request that continues the conversation begins with them. */
  history(): unknown[] {
    return this.turns.value.flatMap(({ input, answer }) => {
      if (answer.output.length > 0) return [...input, ...answer.output];
      // The answer was stopped or broke off. The model gets the text that had come.
      if (answer.text === "") return answer.state === "failed" ? [] : input;
      return [...input, { role: "assistant", content: answer.text }];
    });
  }

  /** Sends the request, and fills a new turn with its answer as that comes. */
  async send({ body, isResponses }: Ask, message: Message): Promise<void> {
    lastKey += 1;
    const key = lastKey;
    const abort = new AbortController();
    this.#running = abort;
    const answer: Answer = { state: "running", reasoning: "", text: "", calls: [], output: [] };
    this.growing.value = undefined;
    this.turns.value = [
      ...this.turns.value,
      { ...message, key, model: String(body.model), answer: { ...answer } },
    ];
    const id = this.#id;
    const keepIt = () => {
      if (id === this.#id) void keepConversation(id, this.turns.value);
    };
    keepIt();
    const show = paced(() => {
      if (this.#running === abort) this.growing.value = { ...answer };
    });
    const end = () => {
      this.turns.value = this.turns.value.map((one) =>
        one.key === key ? { ...one, answer: { ...answer } } : one,
      );
      keepIt();
    };
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
    if (this.#running === abort) {
      this.#running = undefined;
      this.growing.value = undefined;
    }
    end();
    // A stopped answer has no usage, and an upstream may leave it out too. The ledger has the charge.
    if (answer.costUsdMicros === undefined && answer.state !== "failed" && answer.id) {
      const cost = await costOf(answer.id);
      if (cost !== undefined) answer.costUsdMicros = cost;
      end();
    }
  }
}

/** The conversation of the page. */
export const chat = new Conversation();
/** The same messages to a second model, beside the first. */
export const compared = new Conversation();

/** Releases the files of turns that no conversation shows any more. */
function releaseAttachments(those: readonly Turn[]): void {
  const shown = new Set(
    [...chat.turns.value, ...compared.turns.value].flatMap(({ attachments }) => attachments),
  );
  for (const attachment of those.flatMap(({ attachments }) => attachments)) {
    if (!shown.has(attachment)) URL.revokeObjectURL(attachment.blobUrl);
  }
}

export function beginAnother(): void {
  compared.beginAnother();
  chat.beginAnother();
}

export function clear(): void {
  compared.clear();
  chat.clear();
}

export function reopen(kept: NonNullable<typeof keptConversations.value>[number]): void {
  chat.reopen(kept);
  compared.follow(chat);
}

// Another key may sign in to this page.
session.subscribe((value) => {
  if (!value) beginAnother();
});

/** The turns of one message: its answer, and those to the results of functions that were called. */
export function rounds(turns: readonly Turn[]): Turn[][] {
  const all: Turn[][] = [];
  for (const turn of turns) {
    const isMessage = turn.text !== "" || turn.attachments.length > 0;
    const last = all.at(-1);
    if (isMessage || !last) all.push([turn]);
    else last.push(turn);
  }
  return all;
}

export function userMessage(text: string, attachments: readonly Attachment[]): unknown {
  if (attachments.length === 0) return { role: "user", content: text };
  return { role: "user", content: [{ type: "input_text", text }, ...attachments.map(partOf)] };
}

/** Ms between two steps in which an answer grows in the page. A reader takes them for a flow. */
const stepMs = 100;

/** Changes the page a few times a second, however fast an answer comes. */
function paced(change: () => void): () => void {
  let isDue = false;
  let shownAt = 0;
  return () => {
    if (isDue) return;
    isDue = true;
    const step = () => {
      isDue = false;
      shownAt = performance.now();
      change();
    };
    const waitMs = Math.max(0, shownAt + stepMs - performance.now());
    setTimeout(() => requestAnimationFrame(step), waitMs);
  };
}
