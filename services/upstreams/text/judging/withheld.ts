// Keeps events back whose text may be past the bound, until the upstream's usage shows whether it is. `../read-stream.ts` decides
// by it.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { maxWithheldBytes } from "../limits.ts";
import { parseEvent } from "../parse-event.ts";
import type { ReportedUsage } from "../port.ts";
import { isFinalType, UsageNote } from "../usage-note.ts";

/**
 * Events of an answer that is above its bound by the count of genmesh. No reader sees them, and so no caller, until the upstream has
 * reported its usage. Then they are read like any others, or the answer is cut before the first of them.
 */
export class Withheld {
  /** In the order in which they came. */
  readonly events: SseEvent[] = [];
  /** The first event with no more text than fits into the bound. Undefined: nothing fits. */
  readonly fitting: SseEvent | undefined;
  readonly #usage = new UsageNote();
  #bytes = 0;
  #hasLast = false;
  #isOver = false;

  constructor(fitting: SseEvent | undefined) {
    this.fitting = fitting;
  }

  /** Takes an event. Answers it as an object where it is one. */
  add(source: SseEvent): JsonObject | undefined {
    this.events.push(source);
    this.#bytes += source.end - source.start;
    // A copy. The event must be unchanged when it is read again.
    const event = parseEvent({ ...source });
    if (event === "done") this.#isOver = true;
    if (!isJsonObject(event)) return undefined;
    this.#hasLast ||= isFinalType(event.type);
    this.#usage.note(event, this.#hasLast);
    return event;
  }

  /** Notes that nothing more will come. */
  end(): void {
    this.#isOver = true;
  }

  /** The usage that the upstream has reported so far. */
  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  /** Has the upstream sent its last event, but not its usage? The usage may come a little later. */
  get isUsageAwaited(): boolean {
    return this.#hasLast && this.usage === undefined;
  }

  /** Has all come that will be reported, or more than may be withheld? */
  get isDecided(): boolean {
    const isTold = this.#hasLast && this.usage !== undefined;
    return this.#isOver || isTold || this.#bytes > maxWithheldBytes;
  }
}
