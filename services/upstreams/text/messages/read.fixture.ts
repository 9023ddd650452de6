// Reads whole streams of Messages, for the tests of this folder.

import { expect } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import { readEvents } from "../../../../test/support/text-requests.ts";
import type { AnswerEvent } from "../port.ts";
import type { StreamReader } from "../stream-reader.ts";
import type { MessageFacts } from "./from-responses.ts";

/** The facts of a message in these tests. */
export const messageFacts = (more: Partial<MessageFacts> = {}): MessageFacts => ({
  ...{ id: "msg_1", modelId: "chat-1", stops: [], thinking: "shown" },
  ...more,
});

/** The events that a reader makes of a whole stream of `data:` lines. It ends once, and never names the upstream's model. */
export function readStream(
  reader: StreamReader,
  sent: readonly (JsonObject | string)[],
  end: "end" | "cut" | "bound" = "end",
) {
  const out: AnswerEvent[] = [];
  const text = sent
    .map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`)
    .join("");
  for (const event of createSseParser({ maxEventBytes: 1e6 }).push(Buffer.from(text))) {
    reader.read(event, out);
  }
  reader.settle(out);
  if (end === "bound") reader.cut(out);
  else reader.end(end, out);
  expect(out.filter((event) => event.ending)).toEqual([out.at(-1)]);
  const shown = readEvents(out);
  expect(shown.wire).not.toContain("up-model");
  return { out, text: out.map((event) => event.text).join(""), ...shown };
}
