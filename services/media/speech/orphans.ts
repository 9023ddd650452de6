import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createBringForward } from "#kit/lease-time.ts";
import { type HoldVerdict, HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { blobKeyOf, type SpeechContext } from "./context.ts";
import { endSpeech } from "./ending.ts";
import {
  keepHoldMs,
  leaseMs,
  settleRetryMs,
  sweepBatch,
  sweepIntervalMs,
  sweepRetryMs,
} from "./limits.ts";
import type { SpeechRecord } from "./store.ts";

/** Ends what its own process did not. */
export interface Orphans {
  /** Looks every second until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks once, at everything that is due now. */
  sweep(): Promise<void>;
  /** What is to become of a hold. An orphan is closed before this answers. */
  verdict(holdId: string, accountId: string): Promise<HoldVerdict>;
}

/** Makes the keeper of orphans; several at once do no harm. */
export function createOrphans(context: SpeechContext): Orphans {
  const { clock, leaseTime, store, blobs, events } = context;

  /** A dead process's request came to nothing: had its MP3 been stored and written down, it would not be open. */
  const close = async (record: SpeechRecord): Promise<SpeechRecord | undefined> => {
    const now = clock.now();
    const closer = { leaseOverAt: leaseTime() };
    const closing = { kind: "releasing" } as const;
    const isOurs = await store.close(record.speechId, closer, closing, now + settleRetryMs);
    if (!isOurs) return store.find(record.speechId);
    events.ended(record, "orphan", now - record.openedAt);
    return { ...record, status: "releasing" };
  };

  const finish = async (record: SpeechRecord): Promise<void> => {
    if (record.status === "closed") {
      await blobs.delete(blobKeyOf(record.speechId));
      await store.forget(record.speechId);
      events.expired();
      return;
    }
    const closed = record.status === "open" ? await close(record) : record;
    if (closed?.status === "settling" || closed?.status === "releasing") {
      await endSpeech(closed, context);
    }
  };

  const bringForward = createBringForward(clock, leaseMs, store);
  const sweep = async () => {
    await bringForward();
    let goesOn = true;
    while (goesOn) {
      const due = await store.due(leaseTime(), sweepBatch);
      let failed = 0;
      for (const record of due) {
        try {
          await finish(record);
        } catch (error) {
          failed++;
          events.trouble("a speech could not be ended", record.speechId, error);
          await store.defer(record.speechId, clock.now() + sweepRetryMs);
        }
      }
      goesOn = due.length === sweepBatch && failed === 0;
    }
  };

  return {
    sweep,
    async run(signal) {
      while (!signal.aborted) {
        await sweep().catch((error) => events.trouble("sweeping speech failed", undefined, error));
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
      }
    },
    async verdict(holdId, accountId) {
      const found = await store.find(holdId);
      if (found?.accountId !== accountId) return release();
      const isOver = found.status === "open" && found.leaseUntil <= leaseTime();
      return verdictOf(isOver ? await close(found) : found, clock.now());
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
      return release();
  }
}

function release(): HoldVerdict {
  return create(HoldVerdictSchema, { verdict: { case: "release", value: true } });
}
