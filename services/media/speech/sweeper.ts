// Ends speech requests whose process died, deletes those whose time is over, and answers billing about their holds.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { keepHoldMs, settleRetryMs } from "#common/paid-work/limits.ts";
import { createSweep, type Sweep } from "#common/paid-work/sweep.ts";
import { createLeaseTime, erasingPatienceMs } from "#kit/time/lease-time.ts";
import { type HoldVerdict, HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import { drawSpeech, finishSpeech } from "./ending.ts";
import type { SpeechRecord } from "./store.ts";

/** Ends the requests that their own process did not end. */
export interface SpeechSweeper extends Sweep {
  /** The verdict about a hold. A request whose process is gone is closed before this answers. */
  verdict(holdId: string, accountId: string): Promise<HoldVerdict>;
}

/** Makes the sweeper. Several may run at once. */
export function createSpeechSweeper(context: SpeechContext): SpeechSweeper {
  const { clock, leaseTime, store, blobs, events, retentionMs } = context;
  const erasingTime = createLeaseTime(clock, erasingPatienceMs);

  /** A dead process's request has no result: if its speech were stored and noted, the request would not be open. */
  const closeLost = async (record: SpeechRecord): Promise<SpeechRecord | undefined> => {
    const now = clock.now();
    const closer = { leaseOverAt: leaseTime() };
    const closing = { kind: "releasing" } as const;
    const isClosed = await store.close(record.speechId, closer, closing, now + settleRetryMs);
    if (!isClosed) return store.find(record.speechId);
    events.ended(record, "orphan", now - record.openedAt);
    return { ...record, status: "releasing" };
  };

  /** Charges a request whose end is stored. */
  const draw = (record: SpeechRecord, wasLost: boolean) =>
    drawSpeech(record, wasLost ? "lost" : record.audio ? "completed" : "failed", context);

  const drive = async (record: SpeechRecord): Promise<void> => {
    switch (record.status) {
      case "open": {
        const closed = await closeLost(record);
        if (closed?.status !== "releasing") return;
        await draw(closed, true);
        return finishSpeech(closed, context);
      }
      case "settling":
      case "releasing":
        await draw(record, false);
        return finishSpeech(record, context);
      case "closed":
        // Nothing is erased while a clock is ahead for a moment.
        if (record.openedAt + (retentionMs ?? 0) > erasingTime()) {
          return store.defer(record.speechId, clock.now() + erasingPatienceMs);
        }
        await blobs.delete(blobKeyOf(record.speechId));
        await store.forget(record.speechId);
        events.expired();
    }
  };

  const sweep = createSweep({
    clock,
    leaseTime,
    store,
    idOf: ({ speechId }) => speechId,
    drive,
    failed(speechId, error) {
      const what =
        speechId === undefined ? "sweeping speech failed" : "a speech could not be ended";
      events.trouble(what, speechId, error);
    },
  });
  return {
    ...sweep,
    async verdict(holdId, accountId) {
      const found = await store.find(holdId);
      if (found?.accountId !== accountId) return verdictOf(undefined, clock.now());
      const isOver = found.status === "open" && found.leaseUntil <= leaseTime();
      const ended = isOver ? await closeLost(found) : found;
      // This charge has the usage record, which billing lacks. Where this fails, billing ends the hold by the verdict.
      if (ended?.status === "settling" || ended?.status === "releasing") {
        await draw(ended, isOver).catch((error) => {
          events.trouble("a speech's hold is ended without its record", holdId, error);
        });
      }
      return verdictOf(ended, clock.now());
    },
  };
}

function verdictOf(record: SpeechRecord | undefined, now: number): HoldVerdict {
  switch (record?.status) {
    case "open": {
      const value = timestampFromMs(now + keepHoldMs);
      return create(HoldVerdictSchema, { verdict: { case: "keepUntil", value } });
    }
    case "settling":
    case "closed":
      return create(HoldVerdictSchema, {
        verdict: { case: "settleAmount", value: record.amount },
      });
    case "releasing":
    case undefined:
      return create(HoldVerdictSchema, { verdict: { case: "release", value: true } });
  }
}
