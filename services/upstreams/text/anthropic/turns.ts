// Puts the parts of a conversation into the order that Messages demand. `input.ts` adds them one by one.

import type { JsonObject } from "#kit/base/json.ts";
import { invalid } from "./untranslatable.ts";

interface Turn {
  role: "user" | "assistant" | "system";
  /** Results of calls. They stand before everything else of their turn. */
  results: JsonObject[];
  content: JsonObject[];
}

/** A call whose result has not come. */
interface OpenCall {
  /** The path of its item. */
  param: string;
}

/**
 * The turns of a conversation under the rules of Messages. Neighbours of one role are one turn. The results of a turn's calls are the
 * first blocks of the next turn of the user.
 */
export class Turns {
  readonly #takesSystem: boolean;
  readonly #turns: Turn[] = [];
  /** Calls of the last turn of the assistant. */
  #open = new Map<string, OpenCall>();
  /** The first turn of the user behind it. */
  #answering: Turn | undefined;
  /** Later instructions that wait for a turn of the user. */
  #waiting: JsonObject[] = [];

  /** `takesSystem`: the upstream takes later instructions as turns of their own. */
  constructor(takesSystem: boolean) {
    this.#takesSystem = takesSystem;
  }

  /** Is there no turn yet? */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  user(blocks: readonly JsonObject[]): void {
    if (blocks.length > 0) this.#turn("user").content.push(...blocks);
  }

  /** `param`: the path of the item. */
  assistant(blocks: readonly JsonObject[], param: string): void {
    if (blocks.length === 0) return;
    if (this.isEmpty)
      invalid(param, "The model's conversations begin with the user. Add a message.");
    if (this.#turns.at(-1)?.role !== "assistant") this.#endOfUser();
    this.#turn("assistant").content.push(...blocks);
  }

  call(id: string, block: JsonObject, param: string): void {
    this.assistant([block], param);
    this.#open.set(id, { param });
  }

  result(id: string, block: JsonObject, param: string): void {
    if (!this.#open.delete(id)) {
      invalid(param, "It has no call before it, in the model's last turn. Send the call too.");
    }
    this.#answering ??= this.#turn("user");
    this.#answering.results.push(block);
  }

  /** Later instructions: a turn of their own, which stands behind one of the user, or a text of the user's. */
  system(blocks: readonly JsonObject[]): void {
    if (blocks.length === 0) return;
    if (!this.#takesSystem) this.user(blocks);
    else if (this.#turns.at(-1)?.role === "assistant") this.#waiting.push(...blocks);
    else this.#turn("system").content.push(...blocks);
  }

  /** All turns as messages. */
  messages(): JsonObject[] {
    this.#noneOpen();
    if (this.#turns.at(-1)?.role === "assistant") this.#asUser();
    else this.#endOfUser();
    return this.#turns.map(({ role, results, content }) => ({
      role,
      content: [...results, ...content],
    }));
  }

  #turn(role: Turn["role"]): Turn {
    const last = this.#turns.at(-1);
    if (last?.role === role) return last;
    const turn: Turn = { role, results: [], content: [] };
    this.#turns.push(turn);
    if (role === "user") this.#answering ??= turn;
    return turn;
  }

  /** The turn of the user is over, and the assistant's begins. */
  #endOfUser(): void {
    this.#noneOpen();
    if (this.#waiting.length > 0) {
      const blocks = this.#waiting;
      this.#waiting = [];
      this.#turn("system").content.push(...blocks);
    }
    this.#answering = undefined;
  }

  /** Instructions behind which no turn of the user came. */
  #asUser(): void {
    const blocks = this.#waiting;
    this.#waiting = [];
    this.user(blocks);
  }

  #noneOpen(): void {
    for (const { param } of this.#open.values()) {
      invalid(param, "The call has no result before the next turn. Send its output too.");
    }
    this.#open = new Map();
  }
}
