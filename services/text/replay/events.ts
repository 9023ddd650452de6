import { isJsonObject, type JsonObject } from "#kit/json.ts";
import { dataFrame } from "../../upstreams/text/frame.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { replayedEvents } from "../../upstreams/text/replay.ts";
import { replayPieceBytes } from "../limits.ts";
import type { AnswerForm } from "../request/parse.ts";
import { dataOf, doneFrame } from "./frames.ts";

/** Events of a stream that are ready, in their order, and where pieces of it end that hold whole events. */
export interface ReadyEvents {
  bytes: Uint8Array;
  ends: number[];
}

/** A kept answer as the event stream that it would have been, `[DONE]` included. Only responses and chat have one. */
export function eventsOfAnswer(
  answer: Uint8Array,
  operation: TextOperation,
  form: AnswerForm,
): ReadyEvents {
  const value: unknown = JSON.parse(Buffer.from(answer).toString());
  const hasEvents = operation === "responses" || operation === "chat";
  if (!isJsonObject(value) || !hasEvents) throw new TypeError("no answer to stream");
  const events = replayedEvents(operation, value, { withUsage: form === "events+usage" });
  const told = events.map((event) => event.frame);
  const last = told.pop();
  if (last) told.push(operation === "chat" ? withKeptUsage(last, value) : last);
  const frames = [...told, doneFrame];
  const ends: number[] = [];
  let [begun, end] = [0, 0];
  for (const frame of frames) {
    if (end > begun && end + frame.length > begun + replayPieceBytes) {
      ends.push(end);
      begun = end;
    }
    end += frame.length;
  }
  return { bytes: Buffer.concat(frames), ends: [...ends, end] };
}

/** The usage chunk of a chat as it was shown: what an upstream's own may say has neither what it cost nor `estimated`. */
function withKeptUsage(frame: Uint8Array, { usage }: JsonObject): Uint8Array {
  const chunk = dataOf(frame);
  if (!isJsonObject(chunk?.usage) || !isJsonObject(usage)) return frame;
  return dataFrame({ ...chunk, usage });
}

/** Gives a stream that is ready piece by piece: one reader takes it as fast as it can, and others have their turns. */
export async function* piecesOf({ bytes, ends }: ReadyEvents): AsyncIterable<Uint8Array> {
  let from = 0;
  for (const end of ends) {
    yield bytes.subarray(from, end);
    from = end;
  }
}
