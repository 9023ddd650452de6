// Sends a request whose answer is speech, and passes the audio on to a listener as it comes. The drivers of speech share it.

import { joinInTurns } from "#kit/base/in-turns.ts";
import { beginningBytes, beginsAs } from "#kit/sound/beginning.ts";
import { soundTypes } from "#kit/sound/formats.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { DriverContext } from "./context.ts";
import { type Call, exchange } from "./exchange.ts";
import { failed, isUnsent, isWorthRepeating, StatusError } from "./faults.ts";
import { generateLimits, generateTimes, generateTries } from "./limits.ts";
import { type SpeechTask, UnkeptSpeechError } from "./port.ts";
import { withTries } from "./retries.ts";

/**
 * Reads speech into memory, once there is room for the bytes, and lets a listener hear it. Throws `too_large` where it is larger than
 * the largest that is kept, and a `failed` GenerationError where it does not begin like its format.
 */
export async function readSound(
  chunks: AsyncIterable<Uint8Array>,
  { format, reach, hear }: SpeechTask,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let [bytes, heard] = [0, 0];
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > generateLimits.speechBytes) throw new UpstreamError("too_large");
    await reach(bytes);
    pieces.push(chunk);
    if (!hear || bytes < beginningBytes) continue;
    if (heard === 0 && !beginsAs(Buffer.concat(pieces), format)) {
      throw failed(`the bytes are no ${format}`);
    }
    for (const piece of pieces.slice(heard)) hear(piece);
    heard = pieces.length;
  }
  return joinInTurns(pieces);
}

/** Sends a request whose answer is the speech itself. Without an idempotency key it is repeated only where it was surely not taken. */
export async function soundOf(
  context: DriverContext,
  task: SpeechTask,
  call: Pick<Call, "upstream" | "url" | "headers" | "body">,
): Promise<Uint8Array> {
  const { format, signal, sending } = task;
  const once = call.headers?.["idempotency-key"] === undefined;
  let isHeard = false;
  const hear =
    task.hear &&
    ((piece: Uint8Array) => {
      isHeard = true;
      task.hear?.(piece);
    });
  const accept = soundTypes[format];
  const timeoutMs = generateTimes.speakMs;
  const request = { ...call, method: "POST", accept, once, timeoutMs, signal } as const;
  // A repeat could speak differently.
  const mayRepeat = (error: unknown) =>
    !isHeard && (once ? isUnsent(error) : isWorthRepeating(error));
  const tries = { most: generateTries.start, mayRepeat, signal };
  return withTries(context, tries, async () => {
    sending();
    const reply = await exchange(context, request);
    try {
      if (reply.status < 300) return await readSound(reply.body.chunks, { ...task, hear });
      throw new StatusError(reply.status);
    } catch (error) {
      // It spoke, and was heard, until our own time was over. A caller that asks for a long speech could cause that.
      if (isHeard && isOverTime(error)) throw new UnkeptSpeechError(error);
      throw error;
    } finally {
      // Closes the connection of an answer that is not wanted any longer, or that cannot be kept.
      reply.body.close();
    }
  });
}

function isOverTime(error: unknown): boolean {
  return error instanceof UpstreamError && error.isOfWhole;
}
