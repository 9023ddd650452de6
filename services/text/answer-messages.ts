import {
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Answer } from "./joins.ts";

/** What an answer is asked for with. */
export interface Asked {
  /** Rejects with the refusal of the request. */
  answer: Promise<Answer>;
  /** The caller is served, or gone. May be called twice. */
  leave(): void;
}

/** Of every message but the first. */
const noNotes = { replayed: false, ignoredParameters: [] };

/**
 * An answer as the messages of its call; `ask` is called for the first of them. By hand: a generator takes several turns of
 * the microtask queue for each delta.
 */
export class AnswerMessages implements AsyncIterableIterator<StreamGenerateResponse> {
  readonly #ask: () => Asked;
  #asked: Asked | undefined;
  #read: (() => Promise<Uint8Array | undefined>) | undefined;
  #notes: Pick<StreamGenerateResponse, "replayed" | "ignoredParameters"> = noNotes;
  #isOver = false;
  readonly #give = (value: Uint8Array | undefined) => (value ? this.#events(value) : this.#end());
  readonly #fail = (error: unknown): never => {
    this.#end();
    throw error;
  };

  constructor(ask: () => Asked) {
    this.#ask = ask;
  }

  next(): Promise<IteratorResult<StreamGenerateResponse>> {
    if (this.#isOver) return Promise.resolve(this.#end());
    return this.#read ? this.#read().then(this.#give, this.#fail) : this.#begin();
  }

  async return(): Promise<IteratorResult<StreamGenerateResponse>> {
    return this.#end();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #begin(): Promise<IteratorResult<StreamGenerateResponse>> {
    try {
      this.#asked = this.#ask();
      const answer = await this.#asked.answer;
      this.#notes = { replayed: answer.replayed, ignoredParameters: [...answer.ignored] };
      if (answer.kind === "json") {
        this.#end();
        return this.#step({ case: "complete", value: answer.body });
      }
      this.#read = answer.next;
      return this.#give(await answer.next());
    } catch (error) {
      return this.#fail(error);
    }
  }

  #events(value: Uint8Array): IteratorResult<StreamGenerateResponse> {
    const step = this.#step({ case: "events", value });
    this.#notes = noNotes;
    return step;
  }

  /** A whole message, so that nobody on its way has to make one of it. */
  #step(part: StreamGenerateResponse["part"]): IteratorResult<StreamGenerateResponse> {
    const $typeName = StreamGenerateResponseSchema.typeName;
    return { done: false, value: { $typeName, part, ...this.#notes } };
  }

  #end(): IteratorResult<StreamGenerateResponse> {
    this.#isOver = true;
    this.#asked?.leave();
    return { done: true, value: undefined };
  }
}
