import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import type { SseEvent } from "#kit/upstream/sse.ts";
import { maxWithheldBytes } from "../limits.ts";
import { parseEvent } from "../parse-event.ts";
import type { ReportedUsage } from "../port.ts";
import { isFinalType, UsageNote } from "../usage-note.ts";

/**
 * Events of an answer that is above its bound by our count. No reader sees them, and so no caller, until their upstream has told what it used: then they are
 * read like any other, or the answer is cut before the first of them.
 */
export class Withheld {
  /** In the order of their coming. */
  readonly events: SseEvent[] = [];
  /** What of the first fits into the bound; undefined: nothing. */
  readonly fitting: SseEvent | undefined;
  readonly #usage = new UsageNote();
  #bytes = 0;
  #hasLast = false;
  #isOver = false;

  constructor(fitting: SseEvent | undefined) {
    this.fitting = fitting;
  }

  /** Takes an event; gives it as an object, where it is one. */
  add(source: SseEvent): JsonObject | undefined {
    this.events.push(source);
    this.#bytes += source.data.length;
    // A copy: reading it again must find it as it came.
    const event = parseEvent({ ...source });
    if (event === "done") this.#isOver = true;
    if (!isJsonObject(event)) return undefined;
    this.#hasLast ||= isFinalType(event.type);
    this.#usage.note(event, this.#hasLast);
    return event;
  }

  /** Nothing more will come. */
  end(): void {
    this.#isOver = true;
  }

  /** What upstream used, as far as it has told. */
  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  /** Has upstream said its last word, though not its usage? A little later it may. */
  get isUsageAwaited(): boolean {
    return this.#hasLast && this.usage === undefined;
  }

  /** Is there all that will be told, or more than is held? */
  get isDecided(): boolean {
    const isTold = this.#hasLast && this.usage !== undefined;
    return this.#isOver || isTold || this.#bytes > maxWithheldBytes;
  }
}
