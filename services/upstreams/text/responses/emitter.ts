import type { JsonObject } from "#kit/base/json.ts";
import { dataOf, type SseEvent } from "#kit/upstream/sse.ts";
import { typedFrame, typedFrameOf } from "../frame.ts";
import type { AnswerEvent, Ending, ReportedUsage } from "../port.ts";

/** Facts that an event carries beside its frame. */
export interface EventNotes {
  /** Generated text in the event. */
  text?: string;
  usage?: ReportedUsage | undefined;
  ending?: Ending;
  isByUs?: boolean;
  opaque?: readonly string[];
}

const lineFeed = 10;

/** Numbers the events of one stream, and makes their frames. */
export class Emitter {
  /** The list that gets the events. It is set before each use. */
  out: AnswerEvent[] = [];
  #sequence = 0;

  /** Sends an event that was made or changed here. */
  send(event: JsonObject, notes?: EventNotes): void {
    this.#push(typedFrame({ ...event, sequence_number: this.#sequence }), notes);
  }

  /**
   * Sends an `event` of the upstream's, parsed from `source`. Where `isChanged` is false and its number is right, the original bytes
   * are sent.
   */
  pass(event: JsonObject, source: SseEvent, isChanged: boolean, notes?: EventNotes): void {
    const type = event.type as string;
    if (isChanged || event.sequence_number !== this.#sequence) {
      event.sequence_number = this.#sequence;
      this.#push(typedFrame(event), notes);
    } else if (source.frame && source.name === type) {
      this.#push(source.frame, notes);
    } else {
      const data = dataOf(source);
      this.#push(data.includes(lineFeed) ? typedFrame(event) : typedFrameOf(type, data), notes);
    }
  }

  #push(frame: Uint8Array, notes: EventNotes | undefined): void {
    this.#sequence++;
    const event: AnswerEvent = { frame, text: notes?.text ?? "" };
    if (notes?.usage) event.usage = notes.usage;
    if (notes?.ending) event.ending = notes.ending;
    if (notes?.isByUs) event.isByUs = true;
    if (notes?.opaque && notes.opaque.length > 0) event.opaque = notes.opaque;
    this.out.push(event);
  }
}
