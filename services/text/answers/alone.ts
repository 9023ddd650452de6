import type { Awaitable } from "#kit/base/awaitable.ts";
import { Stop } from "#kit/base/stop.ts";
import { staged } from "#kit/stream/stages.ts";
import type { UnderWay } from "../base/under-way.ts";
import type { AnswerRoom } from "./answer-room.ts";
import type { Answer, Begin, Seat } from "./joins.ts";
import { asRefusal, stopped } from "./stop-reason.ts";

/** The only seat of a request that no other can join. */
export class Alone implements Seat {
  readonly joined = false;
  readonly answer: Promise<Answer>;
  readonly #stop = new Stop();
  readonly #running: UnderWay<Stop>;
  #isLeft = false;
  /** True once its events can be read. */
  #isStream = false;
  /** True where nothing is left to stop. */
  #isLanded = false;
  #room: AnswerRoom | undefined;

  constructor(begin: Begin, running: UnderWay<Stop>) {
    this.#running = running;
    this.#stop.addEventListener("abort", () => {
      // An abandoned stream is no longer read.
      if (this.#isStream) this.#land();
    });
    running.began(this.#stop);
    this.answer = this.#begun(begin);
  }

  readonly leave = (): void => {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#room?.[Symbol.dispose]();
    if (!this.#isLanded) this.#stop.abort(stopped("left"));
  };

  #begun(begin: Begin): Promise<Answer> {
    const failed = (error: unknown) => {
      this.#land();
      throw asRefusal(error, this.#stop);
    };
    let beginning: Awaitable<Answer>;
    try {
      beginning = begin(this.#stop);
    } catch (error) {
      beginning = Promise.reject(error);
    }
    return Promise.resolve(beginning).then((answer) => {
      if (answer.kind === "json") {
        this.#land();
        if (this.#isLeft) answer.room?.[Symbol.dispose]();
        else this.#room = answer.room;
        return answer;
      }
      this.#isStream = true;
      if (this.#stop.aborted) this.#land();
      const end = () => this.#land();
      const fail = (error: unknown) => {
        end();
        return error;
      };
      return { ...answer, events: staged(answer.events, { end, fail }) };
    }, failed);
  }

  #land(): void {
    this.#isLanded = true;
    this.#running.ended(this.#stop);
  }
}
