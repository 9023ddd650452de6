import { isRefusal } from "#kit/base/errors.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Slots } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "./context.ts";
import { speechDriverOf } from "./drivers.ts";
import { attemptFailed } from "./events.ts";
import {
  errorOfBeginning,
  failed,
  isTooLarge,
  StatusError,
  toGenerationError,
  unknown,
} from "./faults.ts";
import { noPlaceCameFree, withInference } from "./inference.ts";
import { generateTimes } from "./limits.ts";
import { type GenerationError, type SpeechTask, UnkeptSpeechError } from "./port.ts";
import { soundSeconds } from "./verify-output.ts";

/** Whole, verified speech. */
export interface Spoken {
  bytes: Uint8Array;
  durationSeconds: number;
}

/**
 * Speaks at the first upstream that can: the next is tried where one has certainly not spoken, because it could not be reached, would
 * not take the request, or says that it broke off. A refusal is final, and so is an answer that was lost: it may be paid for.
 * Rejects with the last upstream's GenerationError, the signal's reason, or a refusal where the account has too many requests
 * waiting.
 */
export async function speakAtFirst(
  context: DriverContext,
  slots: Slots,
  task: SpeechTask,
): Promise<Spoken> {
  let last: GenerationError | undefined;
  for (const upstream of task.upstreams) {
    task.signal.throwIfAborted();
    let isSent = false;
    const sending = () => {
      task.sending();
      isSent = true;
    };
    try {
      return await speakInTurn(context, slots, { ...task, sending }, upstream);
    } catch (cause) {
      task.signal.throwIfAborted();
      // The account's own doing.
      if (isRefusal(cause)) throw cause;
      last = errorOfBeginning(cause, { takesKey: false }) ?? toGenerationError(cause);
      attemptFailed(context, { upstream, kind: "speech", id: task.requestId }, last);
      const isUnspoken = last.fault === "not_taken" || last.fault === "broke_off";
      if (!isUnspoken && (isSent || last.fault !== "unknown")) throw last;
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
  const call = { provider: name, model: task.upstreamModel, output: "speech" } as const;
  const place = slots.acquire({ name, max, accountId, waitMs, signal });
  place.catch((error) => {
    if (error instanceof UpstreamError) noPlaceCameFree(context, call);
  });
  using _turn = await place;
  const bytes = await withInference(context, call, signal, () => speakAt(context, task, upstream));
  return { bytes, durationSeconds: soundSeconds(bytes, task.format) };
}

/** Rejects with what became of the request, where it is certain that nothing was spoken. */
async function speakAt(
  context: DriverContext,
  task: SpeechTask,
  upstream: Upstream,
): Promise<Uint8Array> {
  const driver = speechDriverOf(upstream);
  if (!driver) throw failed("the upstream's protocol has no speech");
  try {
    return await driver(context, task, upstream);
  } catch (cause) {
    // Only an answer that has come can be too large: it was spoken. Another deployment may say itself that it was.
    const isSpoken = isTooLarge(cause) || (cause instanceof StatusError && cause.isCharged);
    if (isSpoken) throw new UnkeptSpeechError(cause);
    throw errorOfBeginning(cause, { takesKey: false }) ?? cause;
  }
}
