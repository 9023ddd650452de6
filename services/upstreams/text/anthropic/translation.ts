// Makes answers of Messages those of Responses before anything else reads them, whole or as a stream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser, eventOf, type SseEvent } from "#kit/upstream/sse.ts";
import { parseEvent } from "../parse-event.ts";
import type { EventParser, Translation } from "../translation.ts";
import { itemsOf } from "./items.ts";
import { garbage, MessageEvents } from "./message-events.ts";
import { stopOf } from "./stop.ts";
import type { ToolNames } from "./tools.ts";
import { responsesUsage } from "./usage.ts";

/** Answers of Messages as those of Responses. `names`: the tools of the request. */
export function messagesTranslation(names: ToolNames): Translation {
  return {
    parser: () => new MessagesParser(names),
    whole: (found) => responseOf(found, names),
  };
}

/** Cuts a stream of Messages into events, and gives those of Responses. */
class MessagesParser implements EventParser {
  readonly #parser = createSseParser({ maxEventBytes: answerLimits.eventBytes });
  readonly #events: MessageEvents;

  constructor(names: ToolNames) {
    this.#events = new MessageEvents(names);
  }

  push(chunk: Buffer): readonly SseEvent[] {
    return this.#parser.push(chunk).flatMap((event) => this.#translated(event));
  }

  end(): readonly SseEvent[] {
    const last = this.#parser.end();
    return last ? this.#translated(last) : [];
  }

  #translated(source: SseEvent): SseEvent[] {
    const event = parseEvent(source);
    if (event === "nothing") return [];
    // Readers know what to make of it.
    if (!isJsonObject(event)) return [source];
    const made = this.#events.take(event);
    if (made === garbage) return [eventOf("", Buffer.from(garbage))];
    return made.map((one) => eventOf(`${one.type}`, Buffer.from(JSON.stringify(one))));
  }
}

/** A whole message as a response. Anything else stays as it is. */
function responseOf(found: JsonObject, names: ToolNames): JsonObject {
  if (!Array.isArray(found.content)) return found;
  const { stop_reason: reason, stop_details: details } = found;
  const usage = responsesUsage(found.usage);
  const reported = usage ? { usage } : {};
  const stop = stopOf(reason, details);
  // A message without a reason for its end is none. Its usage is charged nevertheless.
  if (!stop) return reported;
  const output = itemsOf(found.content, names);
  if (stop.refusal !== undefined) {
    const content = [{ type: "refusal", refusal: stop.refusal }];
    output.push({ type: "message", role: "assistant", status: "completed", content });
  }
  return { object: "response", status: stop.status, output, ...stop.fields, ...reported };
}
