import type { RefusalError } from "#kit/errors.ts";
import { isJsonObject } from "#kit/json.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { toErrorBody } from "./errors.ts";
import { eventText } from "./sse.ts";

const done = "data: [DONE]\n\n";
const terminalEvent = /^event: response\.(?:completed|incomplete|failed)$/m;

/** What is known of a stream that broke: its first and its last bytes, where any came. */
export interface BrokenStream {
  operation: Operation;
  first: Uint8Array | undefined;
  last: Uint8Array | undefined;
}

/**
 * The events that end a stream whose service went away, so that it never looks complete: `response.failed` continuing
 * the numbering and the response that the stream began with; for chat an error chunk without `[DONE]`.
 */
export function failureEvents(stream: BrokenStream, refusal: RefusalError, nowMs: number): string {
  const last = text(stream.last);
  if (stream.operation === Operation.CHAT_COMPLETIONS) {
    return last.includes("data: [DONE]")
      ? ""
      : `data: ${JSON.stringify({ error: toErrorBody(refusal) })}\n\n`;
  }
  if (last.includes("data: [DONE]")) return "";
  if (terminalEvent.test(last)) return done;
  const { code, message } = toErrorBody(refusal);
  const failed = eventText("response.failed", {
    type: "response.failed",
    sequence_number: nextNumber(last),
    response: { ...begun(text(stream.first), nowMs), status: "failed", error: { code, message } },
  });
  return failed + done;
}

function nextNumber(last: string): number {
  const numbers = [...last.matchAll(/"sequence_number":\s*(\d+)/g)];
  return numbers.length === 0 ? 0 : Number(numbers.at(-1)?.[1]) + 1;
}

/** The `response` of the first event, or the least that one has. */
function begun(first: string, nowMs: number): Record<string, unknown> {
  const data = /^data: (.+)$/m.exec(first)?.[1];
  try {
    const { response } = JSON.parse(data ?? "{}") as { response?: unknown };
    if (isJsonObject(response)) return response;
  } catch {
    // The first bytes were no event: begin from nothing.
  }
  return { id: "", object: "response", created_at: Math.floor(nowMs / 1_000), output: [] };
}

function text(bytes: Uint8Array | undefined): string {
  return bytes ? new TextDecoder().decode(bytes) : "";
}
