// Numbers and writes the events of a Responses stream, unchanged ones with the upstream's own bytes.

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
  send(event: JsonObject, notes: EventNotes = {}): void {
    const frame = typedFrame({ ...event, sequence_number: this.#sequence++ });
    const { text = "", usage, ending, isByUs, opaque } = notes;
    const sent: AnswerEvent = { frame, text };
    if (usage) sent.usage = usage;
    if (ending) sent.ending = ending;
    if (isByUs) sent.isByUs = true;
    if (opaque && opaque.length > 0) sent.opaque = opaque;
    this.out.push(sent);
  }

  /**
   * Sends an `event` of the upstream's, parsed from `source`. Where `isChanged` is false and its number is right, the original bytes
   * are sent. `text`: generated text in it. `opaque`: its state that was not reported before.
   */
  pass(
    event: JsonObject,
    source: SseEvent,
    isChanged: boolean,
    text: string,
    opaque?: readonly string[],
  ): void {
    const isRight = !isChanged && event.sequence_number === this.#sequence;
    const isNamed = isRight && source.name === event.type;
    if (!isRight) event.sequence_number = this.#sequence;
    const frame = (isNamed && source.frame) || framed(event, isRight ? source : undefined);
    this.#sequence++;
    const sent: AnswerEvent = { frame, text };
    if (opaque && opaque.length > 0) sent.opaque = opaque;
    this.out.push(sent);
  }
}

/** A new frame of an event, with the data of `source` where these are one line. */
function framed(event: JsonObject, source: SseEvent | undefined): Buffer {
  const data = source && dataOf(source);
  const isLine = data && !data.includes(lineFeed);
  return isLine ? typedFrameOf(event.type as string, data) : typedFrame(event);
}
