// The entry of the room: the two ports that the host hands to upstreams, one for media and one for text. Their work is done in
// threads.

import type { BuiltinRenderer, BuiltinText, VideoRequest } from "#common/words/builtin-models.ts";
import { untilAborted } from "#kit/base/abort.ts";
import type { Ids } from "#kit/base/ids.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import type { Clock } from "#kit/time/clock.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import { createSlots } from "#kit/upstream/slots.ts";
import { pictureLimits, rendering, speaking, thinking } from "./limits.ts";
import { answerOf, compactionOf } from "./text/answer.ts";
import { createThreads } from "./threads.ts";

/** Options of the built-in renderer. */
export interface RendererOptions {
  /** Threads for images, videos and music. One task fills one core. */
  threads: number;
  clock: Clock;
}

/**
 * The models that make images, videos, music and speech, without a thread yet. Speech has separate threads: its callers wait for their
 * answers, so it does not wait behind videos.
 */
export function createBuiltinRenderer({ threads, clock }: RendererOptions): BuiltinRenderer {
  const slots = createSlots(clock);
  const { name, waitMs } = rendering;
  const studio = createThreads({
    ...rendering,
    threads,
    takeTurn: (accountId, signal) =>
      slots.acquire({ name, max: threads, accountId, waitMs, signal }),
  });
  const speakingTurns = createFairShare(speaking.share, { clock });
  const speakers = createThreads({
    ...speaking,
    takeTurn: (accountId, signal) => speakingTurns.take(accountId, signal),
  });
  return {
    async image(request, caller) {
      checkPicture(request, pictureLimits.imageArea);
      return await studio.run("image", request, caller);
    },
    async video(request, caller, onProgress) {
      checkVideo(request);
      return await studio.run("video", request, caller, onProgress);
    },
    music: (request, caller, onProgress) => studio.run("music", request, caller, onProgress),
    speech: (request, caller) => speakers.run("speech", request, caller),
    async [Symbol.asyncDispose]() {
      await Promise.all([studio[Symbol.asyncDispose](), speakers[Symbol.asyncDispose]()]);
    },
  };
}

/** The model that writes text, without a thread yet. The same input gives the same text. A schema can make that take seconds. */
export function createBuiltinText({ clock, ids }: { clock: Clock; ids: Ids }): BuiltinText {
  const late = () => new UpstreamError("timeout");
  const thinkingTurns = createFairShare(thinking.share, { clock, late });
  const thinkers = createThreads({
    ...thinking,
    takeTurn: (accountId, signal) => thinkingTurns.take(accountId, signal),
  });
  const newId = (prefix: string) => ids.make(prefix);
  return {
    async respond(body, caller) {
      const thought = await untilAborted(thinkers.run("answer", body, caller), caller.signal);
      return answerOf(body, thought, newId);
    },
    async compact(body, caller) {
      const memory = await untilAborted(thinkers.run("compaction", body, caller), caller.signal);
      return compactionOf(memory, newId);
    },
    [Symbol.asyncDispose]: () => thinkers[Symbol.asyncDispose](),
  };
}

function checkVideo(request: VideoRequest): void {
  const { width, height, durationSeconds } = request;
  checkPicture(request, pictureLimits.videoArea);
  need(width % 2 === 0 && height % 2 === 0, "both sides of a video are even");
  need(durationSeconds > 0 && durationSeconds <= pictureLimits.videoSeconds, "durationSeconds");
}

function checkPicture({ width, height }: { width: number; height: number }, maxArea: number): void {
  const { leastSide, longestSide } = pictureLimits;
  for (const side of [width, height]) {
    need(Number.isInteger(side) && side >= leastSide && side <= longestSide, "a side");
  }
  need(width * height <= maxArea, "the area");
}

function need(holds: boolean, what: string): void {
  if (!holds) throw new RangeError(`outside the renderer's limits: ${what}`);
}
