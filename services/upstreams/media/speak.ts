// Speaks a text at the first of a model's upstreams that can. Jobs have one upstream at a time, and speech tries several within
// the request.

import { isRefusal } from "#kit/base/errors.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Slots } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Pools } from "../pools/index.ts";
import { lanesOf, upstreamOfLane } from "../pools/lanes.ts";
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
import { askedMsOf, kindOf, outcomeOfSpeaking } from "./outcome.ts";
import { type GenerationError, type SpeechTask, UnkeptSpeechError } from "./port.ts";
import { soundSeconds } from "./store-output.ts";

/** Complete, verified speech. */
export interface Spoken {
  bytes: Uint8Array;
  durationSeconds: number;
}

/**
 * Speaks at the first upstream that can and does not rest. The next one is tried where an upstream has surely not spoken: it could not
 * be reached, refused the request, or reported that it broke off. Any other refusal is final. An answer that was lost is final, too,
 * because it may be paid for. Rejects with the last upstream's GenerationError, the signal's reason, or a refusal where too many requests of the
 * account wait.
 */
export async function speakAtFirst(
  context: DriverContext,
  { slots, pools }: { slots: Slots; pools: Pools },
  task: SpeechTask,
): Promise<Spoken> {
  const { upstreamModel } = task;
  const tries = pools.tries(
    lanesOf(task.upstreams, { shares: [], upstreamModel }),
    upstreamModel,
    "",
  );
  let last: GenerationError | undefined;
  for (let one = tries.next(); one; one = tries.next()) {
    const { upstream } = one.lane;
    let isSent = false;
    const sending = () => {
      task.sending();
      isSent = true;
    };
    try {
      task.signal.throwIfAborted();
      const spoken = await speakInTurn(context, slots, { ...task, sending }, upstream);
      one.ended("answered");
      task.tried?.(upstream.name);
      return spoken;
    } catch (cause) {
      if (task.signal.aborted || isRefusal(cause)) one.ended("open");
      task.signal.throwIfAborted();
      // This refusal is the account's own fault.
      if (isRefusal(cause)) throw cause;
      last = errorOfBeginning(cause, { takesKey: false }) ?? toGenerationError(cause);
      one.ended(outcomeOfSpeaking(last, isSent), askedMsOf(last));
      task.tried?.(upstream.name, last instanceof UnkeptSpeechError ? undefined : kindOf(last));
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
  const place = slots.acquire({ name: upstreamOfLane(name), max, accountId, waitMs, signal });
  place.catch((error) => {
    if (error instanceof UpstreamError) noPlaceCameFree(context, call);
  });
  using _turn = await place;
  const bytes = await withInference(context, call, signal, () => speakAt(context, task, upstream));
  return { bytes, durationSeconds: soundSeconds(bytes, task.format) };
}

/** Rejects with the error of the request, where it is certain that nothing was spoken. */
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
    // Only an answer that has come can be too large, so it was spoken. Another deployment may report itself that it spoke.
    const isSpoken = isTooLarge(cause) || (cause instanceof StatusError && cause.isCharged);
    if (isSpoken) throw new UnkeptSpeechError(cause);
    throw errorOfBeginning(cause, { takesKey: false }) ?? cause;
  }
}
