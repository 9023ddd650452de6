import { isRefusal } from "#kit/errors.ts";
import type { Slots } from "#kit/upstream/slots.ts";
import { type Upstream, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { speakBuiltin } from "./builtin.ts";
import type { DriverContext } from "./context.ts";
import { attemptFailed } from "./events.ts";
import { failed, toGenerationError, unknown } from "./faults.ts";
import { speakAtGenmesh } from "./genmesh-speech.ts";
import { generateTimes } from "./limits.ts";
import { speakOpenAi } from "./openai-speech.ts";
import type { GenerationError, SpeechTask } from "./port.ts";
import { seen } from "./seen.ts";
import { mp3Seconds } from "./verify-output.ts";

/** Whole, verified speech. */
export interface Spoken {
  bytes: Uint8Array;
  durationSeconds: number;
}

/**
 * Speaks at the first upstream that can: the next is tried where one cannot be reached, is too busy or breaks off; a
 * refusal is final. Rejects with the last upstream's GenerationError, the signal's reason, or a refusal where the account has
 * too many requests waiting.
 */
export async function speakAtFirst(
  context: DriverContext,
  slots: Slots,
  task: SpeechTask,
): Promise<Spoken> {
  let last: GenerationError | undefined;
  for (const upstream of task.upstreams) {
    task.signal.throwIfAborted();
    try {
      return await speakInTurn(context, slots, task, upstream);
    } catch (cause) {
      task.signal.throwIfAborted();
      // The account's own doing.
      if (isRefusal(cause)) throw cause;
      last = toGenerationError(cause);
      const work = { upstream, kind: "speech", id: task.requestId };
      attemptFailed(context.log, work, last.fault, last);
      if (last.fault !== "unknown") throw last;
    }
  }
  throw last ?? unknown("no upstream was given");
}

/** Waits for a place at an upstream that has a bound. */
async function speakInTurn(
  context: DriverContext,
  slots: Slots,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Spoken> {
  const { name, maxConcurrent: max } = upstream;
  const waitMs = generateTimes.slotWaitMs;
  const { accountId, signal } = task;
  using _turn = await slots.acquire({ name, max, accountId, waitMs, signal });
  const call = { provider: name, model: task.upstreamModel, output: "speech" } as const;
  const bytes = await seen(context, call, signal, () => speakAt(context, task, upstream));
  return { bytes, durationSeconds: mp3Seconds(bytes) };
}

function speakAt(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  switch (upstream.protocol) {
    case UpstreamProtocol.BUILTIN:
      return speakBuiltin(context, task);
    case UpstreamProtocol.GENMESH:
      return speakAtGenmesh(context, task, upstream);
    case UpstreamProtocol.OPENAI:
      return speakOpenAi(context, task, upstream);
  }
  throw failed("the upstream's protocol has no speech");
}
