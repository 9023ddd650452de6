// Ends uploads and deletions that a dead process left half done, every few seconds.

import { clearFile } from "./clear.ts";
import type { GeneratedFiles, StorageContext } from "./context.ts";
import type { AccountFile } from "./file.ts";
import { releasedKeptMs, sweepBatch, sweepIntervalMs, sweepRetryMs } from "./limits.ts";

/** Removes files whose upload or deletion a process did not finish before it died, and the pins of jobs that are gone. */
export interface FileSweeper {
  /** Looks every 5 s until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Handles everything that is due now, once. */
  sweep(): Promise<void>;
}

/** Makes a sweeper. Several at once do no harm. */
export function createFileSweeper(
  context: StorageContext & { generated: Pick<GeneratedFiles, "needsReferences"> },
): FileSweeper {
  const { clock, store, quota, events, generated } = context;

  const finish = async (file: AccountFile): Promise<void> => {
    if (file.state === "storing") {
      if (!(await store.drop(file, clock.now()))) return;
      events.dropped(file, true);
    }
    for (const jobId of await store.pinsOf(file.fileId)) {
      // The process that ends a job unpins its files. This is for one that died in between.
      if (!(await generated.needsReferences(jobId))) await store.unpin(jobId, clock.now());
    }
    await clearFile(file, context);
  };

  const finishOrDefer = async (file: AccountFile): Promise<boolean> => {
    try {
      await finish(file);
      return true;
    } catch (error) {
      events.trouble("a file could not be cleared away", file.fileId, error);
      await store.defer(file, clock.now() + sweepRetryMs);
      return false;
    }
  };

  const sweep = async () => {
    let goesOn = true;
    while (goesOn) {
      const due = await store.due(clock.now(), sweepBatch);
      let failed = 0;
      for (const file of due) if (!(await finishOrDefer(file))) failed++;
      goesOn = due.length === sweepBatch && failed === 0;
    }
    const now = clock.now();
    // All of them, because an account can upload and delete faster than one batch for each look.
    while ((await store.forget(now, sweepBatch)) === sweepBatch);
    while ((await quota.forget(now - releasedKeptMs, sweepBatch)) === sweepBatch);
  };

  return {
    sweep,
    async run(signal) {
      while (!signal.aborted) {
        await sweep().catch((error) => events.trouble("sweeping files failed", undefined, error));
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
      }
    },
  };
}
