// Tells auth when keys were last used, in few messages. No request waits for it.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Clock } from "#kit/time/clock.ts";
import type { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";

/** Reports to auth when keys are used, at most once a key and minute. */
export interface KeyUses extends AsyncDisposable {
  /** Notes that a key is used now. */
  note(keyId: string): void;
}

const minuteMs = 60_000;
/** Milliseconds for which uses are collected, so that a gateway makes one call for many keys. */
export const useFlushMs = 2_000;
/** Deadline of a report, in ms. No caller waits for it. */
const tellTimeoutMs = 5_000;
/** The same when this process stops. It stops in time, with or without the report. */
const lastTellTimeoutMs = 500;
/** Uses of one message, by the method's own bound. */
const maxUsesPerMessage = 1_000;
/** Uses that wait: as many as a cache has keys. Where auth is away for long, further ones are not reported. */
const maxWaiting = 50_000;

/**
 * Makes one. Noted uses are reported some seconds later. A use whose report fails is lost, and the next minute's use is reported again.
 */
export function createKeyUses(deps: { auth: Client<typeof AuthService>; clock: Clock }): KeyUses {
  const { auth, clock } = deps;
  const life = new AbortController();
  let minute = 0;
  /** The keys that were noted in this minute. */
  const noted = new Set<string>();
  let waiting = new Map<string, number>();
  let telling: Promise<void> | undefined;

  const tell = async () => {
    await clock.sleep(useFlushMs, life.signal).catch(() => {});
    const uses = [...waiting];
    waiting = new Map();
    for (let at = 0; at < uses.length; at += maxUsesPerMessage) {
      const some = uses.slice(at, at + maxUsesPerMessage);
      await auth
        .noteKeyUses(
          { uses: some.map(([keyId, ms]) => ({ keyId, useTime: timestampFromMs(ms) })) },
          { timeoutMs: life.signal.aborted ? lastTellTimeoutMs : tellTimeoutMs },
        )
        // Auth is away, or older than the method.
        .catch(() => {});
    }
    telling = undefined;
    if (waiting.size > 0 && !life.signal.aborted) telling = tell();
  };
  return {
    note(keyId) {
      const now = clock.now();
      const thisMinute = Math.floor(now / minuteMs);
      if (thisMinute !== minute) {
        minute = thisMinute;
        noted.clear();
      }
      if (noted.has(keyId)) return;
      noted.add(keyId);
      if (waiting.size >= maxWaiting || life.signal.aborted) return;
      waiting.set(keyId, thisMinute * minuteMs);
      telling ??= tell();
    },
    async [Symbol.asyncDispose]() {
      life.abort();
      await telling;
    },
  };
}
