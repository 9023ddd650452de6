import type { JsonObject } from "#kit/json.ts";
import { UpstreamFailure } from "./failure.ts";
import type { AnswerEvent, StreamAnswer } from "./port.ts";
import type { StreamReader } from "./stream-reader.ts";

/** The stream of an upstream that was asked for one and answered whole. Throws `UpstreamFailure` where it is no answer. */
export function readWhole(found: JsonObject, reader: StreamReader, upstream: string): StreamAnswer {
  const events: AnswerEvent[] = [];
  for (const event of eventsOf(found)) reader.read(sourceOf(event), events);
  reader.settle(events);
  reader.end("end", events);
  return {
    kind: "stream",
    upstream,
    batches: (async function* () {
      yield events;
    })(),
  };
}

/** The fewest events that say the same; readers fill in the others. */
function eventsOf(found: JsonObject): JsonObject[] {
  if (Array.isArray(found.choices)) {
    const choices = found.choices.map((choice) => {
      const { message, ...rest } = choice as JsonObject;
      return { ...rest, delta: message ?? {} };
    });
    return [{ ...found, object: "chat.completion.chunk", choices }];
  }
  const hasOutput = Array.isArray(found.output);
  if (!hasOutput && found.status !== "failed") throw new UpstreamFailure("garbage");
  const status = found.status ?? "completed";
  return [{ type: `response.${status}`, response: found }];
}

function sourceOf(event: JsonObject) {
  return { name: "", data: Buffer.from(JSON.stringify(event)), frame: undefined };
}
