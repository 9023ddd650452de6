// Turns server-sent events into frames of a socket, and writes frames of errors.

import type { RefusalError } from "#kit/base/errors.ts";
import { toHttpError } from "../errors.ts";

/** One event of a stream. */
export interface StreamEvent {
  type: string;
  /** The JSON behind `data:`. */
  data: string;
}

// A dot would stop at U+2028 and U+2029, which JSON has in its texts as they are.
const eventForm = /(?:^|\n)event: ([^\n]+)\n(?:[^\n]*\n)*?data: ([^\n]+)/;
const doneForm = /(?:^|\n)data: \[DONE\]/;

/** The events in whole events of server-sent events. Comments and the mark of the end are left out. */
export function eventsIn(text: string): StreamEvent[] {
  const events: StreamEvent[] = [];
  for (const part of text.split("\n\n")) {
    const [, type, data] = eventForm.exec(part) ?? [];
    if (type !== undefined && data !== undefined && !doneForm.test(part)) {
      events.push({ type, data });
    }
  }
  return events;
}

/** Fields of a frame beside its event. */
export interface Beside {
  /** The lane. "": it has no name. */
  lane: string;
  /** The headers of the same answer over HTTP. Absent: the frame carries none. */
  headers?: Readonly<Record<string, string>>;
}

/** A frame with the JSON of an event, and fields beside it. */
export function frameOf(data: string, { lane, headers }: Beside): string {
  const name = lane === "" ? "" : `,"stream_id":${JSON.stringify(lane)}`;
  const told = headers ? `,"headers":${JSON.stringify(headers)}` : "";
  return name === "" && told === "" ? data : `${data.slice(0, -1)}${name}${told}}`;
}

/** A frame with an error, which ends one request and not the socket. */
export function errorFrame(refusal: RefusalError, { lane, headers = {} }: Beside): string {
  const { status, headers: own, body } = toHttpError(refusal);
  const data = JSON.stringify({ type: "error", status, ...body });
  return frameOf(data, { lane, headers: { ...headers, ...own } });
}
