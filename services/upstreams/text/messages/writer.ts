// Writes the events of a Messages stream in the order that its clients demand.

import type { JsonObject } from "#kit/base/json.ts";
import { stopFields } from "./stop-fields.ts";
import { noUsage } from "./usage.ts";

/** The facts that a message shows beside its content. */
export interface MessageHead {
  id: string;
  modelId: string;
}

/** The end of a message. */
export interface MessageEnd {
  stopReason: string;
  stopSequence: string | null;
  /** For a refusal. */
  stopDetails: JsonObject | null;
  usage: JsonObject;
}

/** A block that was begun and has not ended. */
interface Block {
  content: JsonObject;
  /** Deltas that wait for the blocks before it. */
  waiting: JsonObject[];
  isDone: boolean;
}

/**
 * Makes the events of a Messages stream. Only one of its blocks is open at a time, so a block that overlaps an earlier one waits until
 * that has ended.
 */
export class MessageWriter {
  readonly #send: (event: JsonObject) => void;
  /** Blocks in the order of their beginnings. The first one is open. */
  readonly #blocks = new Map<string, Block>();
  #index = 0;
  #isOpen = false;

  constructor({ id, modelId: model }: MessageHead, send: (event: JsonObject) => void) {
    this.#send = send;
    const message = { id, type: "message", role: "assistant", model, content: [] };
    send({ type: "message_start", message: { ...message, ...stopFields({}), usage: noUsage } });
  }

  /** Adds to a block, which begins as `content` where it has not begun. */
  add(key: string, content: JsonObject, delta?: JsonObject): void {
    const known = this.#blocks.get(key);
    const block = known ?? { content, waiting: [], isDone: false };
    if (!known) this.#blocks.set(key, block);
    if (delta) block.waiting.push(delta);
    this.#flush();
  }

  /** Ends a block. */
  done(key: string): void {
    const block = this.#blocks.get(key);
    if (!block) return;
    block.isDone = true;
    this.#flush();
  }

  /** Ends all blocks. */
  close(): void {
    for (const block of this.#blocks.values()) block.isDone = true;
    this.#flush();
  }

  /** The event behind all blocks. Only `message_stop` follows it. */
  end({ stopReason, stopSequence, stopDetails, usage }: MessageEnd): JsonObject {
    const ended = { stop_reason: stopReason, stop_sequence: stopSequence };
    const delta = stopFields({ ...ended, stop_details: stopDetails });
    return { type: "message_delta", delta, usage };
  }

  #flush(): void {
    for (const [key, block] of this.#blocks) {
      const index = this.#index;
      if (!this.#isOpen) {
        this.#send({ type: "content_block_start", index, content_block: block.content });
        this.#isOpen = true;
      }
      for (const delta of block.waiting) this.#send({ type: "content_block_delta", index, delta });
      block.waiting = [];
      if (!block.isDone) return;
      this.#send({ type: "content_block_stop", index });
      this.#blocks.delete(key);
      this.#index++;
      this.#isOpen = false;
    }
  }
}
