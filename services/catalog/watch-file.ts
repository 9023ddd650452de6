import type { Clock } from "#kit/clock.ts";
import { maxUnsettledLooks, pollMs } from "./limits.ts";
import { type FileRead, readCatalogFile } from "./read-file.ts";

/** Looks at a file again and again. */
export interface FileWatch {
  /** One look. */
  look(): Promise<void>;
  /** Looks every 500 ms until `signal` aborts; resolves then. */
  run(signal: AbortSignal): Promise<void>;
}

/** What a watch needs. */
export interface FileWatchOptions {
  path: string;
  clock: Clock;
  /** What the caller knows already. */
  known: FileRead;
  /** Called once for each content that differs from the one before. Must not throw. */
  changed: (read: FileRead) => void;
}

/**
 * Compares content, not dates: that sees through the swapped links of a mounted ConfigMap and through coarse clocks of
 * file systems, and needs no events (which mounts do not send). A new content counts once two looks agree on it, so that
 * a half-written file is not taken for a whole one; one that never comes to rest counts after the third look.
 */
export function watchFile({ path, clock, known, changed }: FileWatchOptions): FileWatch {
  let judged = known;
  let pending: { read: FileRead; looks: number } | undefined;
  const look = async () => {
    const read = await readCatalogFile(path);
    if (same(read, judged)) {
      pending = undefined;
      return;
    }
    const settled = pending !== undefined && same(read, pending.read);
    const looks = pending ? pending.looks + 1 : 0;
    if (!settled && looks < maxUnsettledLooks) {
      pending = { read, looks };
      return;
    }
    pending = undefined;
    judged = read;
    changed(read);
  };
  return {
    look,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(pollMs, signal).catch(() => {});
        if (!signal.aborted) await look();
      }
    },
  };
}

function same(a: FileRead, b: FileRead): boolean {
  return a.text === b.text && a.fault === b.fault;
}
