import type { HttpBody, HttpReply } from "#kit/upstream/client.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { createSseParser } from "#kit/upstream/sse.ts";
import type { UpstreamEvents } from "./events.ts";
import { failureOf, UpstreamFailure } from "./failure.ts";
import type { AnswerEvent, StreamAnswer, UpstreamRequest } from "./port.ts";
import type { CutReason, StreamReader } from "./stream-reader.ts";

/** What a stream is read with. */
export interface ReadStreamOptions {
  reply: HttpReply;
  reader: StreamReader;
  request: Pick<UpstreamRequest, "signal">;
  /** Its name. */
  upstream: string;
  events: Pick<UpstreamEvents, "broke">;
}

/** Resolves when the first events are there. Throws `UpstreamFailure` where none came. */
export async function readStream(options: ReadStreamOptions): Promise<StreamAnswer> {
  const { upstream, request } = options;
  const batches = readBatches(options);
  try {
    const first = await batches.next();
    return {
      kind: "stream",
      batches: first.done ? batches : resumed(first.value, batches),
      upstream,
    };
  } catch (error) {
    request.signal.throwIfAborted();
    throw failureOf(error) ?? error;
  }
}

type Batch = readonly AnswerEvent[];

/** What was read already, then the rest; leaving early closes the rest. */
function resumed(first: Batch, rest: AsyncGenerator<Batch>): AsyncIterable<Batch> {
  let isFirst = true;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        if (!isFirst) return rest.next();
        isFirst = false;
        return Promise.resolve({ done: false, value: first });
      },
      return: () => rest.return(undefined),
    }),
  };
}

async function* readBatches(options: ReadStreamOptions): AsyncGenerator<Batch> {
  const { reply, reader, request } = options;
  const parser = createSseParser({ maxEventBytes: answerLimits.eventBytes });
  let hasSent = false;
  try {
    while (!reader.isEnded) {
      const out: AnswerEvent[] = [];
      const end = await readChunk(reply.body, parser, reader, out).catch((error: unknown) => {
        request.signal.throwIfAborted();
        // Before the first event the caller can still get an error, or another upstream's answer.
        if (!hasSent && out.length === 0) throw error;
        return cutReasonOf(error, options);
      });
      if (end) reader.end(end, out);
      if (out.length === 0) continue;
      hasSent = true;
      yield out;
    }
  } finally {
    // After its last event a connection is worth keeping; one that is left in the middle would go on generating.
    if (reader.isEnded) reply.body.release();
    else reply.body.close();
  }
}

/** Reads what has come; gives the reason where nothing more will. */
async function readChunk(
  body: HttpBody,
  parser: ReturnType<typeof createSseParser>,
  reader: StreamReader,
  out: AnswerEvent[],
): Promise<CutReason | undefined> {
  const chunk = await body.next();
  const last = chunk ? undefined : parser.end();
  const events = chunk ? parser.push(chunk) : last ? [last] : [];
  for (const event of events) {
    reader.read(event, out);
    if (reader.isEnded) return undefined;
  }
  reader.settle(out);
  return chunk ? undefined : "end";
}

/** How a stream that had begun was cut. Whatever it was, the caller is owed a terminal event. */
function cutReasonOf(error: unknown, { events, upstream }: ReadStreamOptions): CutReason {
  if (error instanceof UpstreamError && error.kind === "timeout") return "timeout";
  if (error instanceof UpstreamError && error.kind === "cut") return "cut";
  const isTheirs = error instanceof UpstreamError || error instanceof UpstreamFailure;
  if (!isTheirs) events.broke(upstream, error);
  return "garbage";
}
