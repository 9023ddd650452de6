// Bounds the bytes that running streams keep for callers that join late, in an account and in the process.

import { maxReplayBytesInAll, maxReplayBytesPerAccount } from "../base/limits.ts";

/** Room for bytes that running streams keep for callers that join late. */
export interface ReplayRoom {
  /** Opens the kept bytes of one stream of the account. */
  open(accountId: string): ReplayBytes;
}

/** The kept bytes of one stream. */
export interface ReplayBytes {
  /** Notes that the stream keeps this many bytes more. False where its account or the process has no room for them. */
  keep(bytes: number): boolean;
  /** Notes that this many of the bytes were dropped. */
  drop(bytes: number): void;
  /** Called when no caller reads the bytes any longer. All room is given back, and nothing is noted from now on. */
  free(): void;
}

/** Makes {@link ReplayRoom} with all room free. */
export function createReplayRoom(
  inAll = maxReplayBytesInAll,
  perAccount = maxReplayBytesPerAccount,
): ReplayRoom {
  let all = 0;
  const ofAccount = new Map<string, number>();
  const add = (accountId: string, bytes: number) => {
    const own = (ofAccount.get(accountId) ?? 0) + bytes;
    all += bytes;
    if (own > 0) ofAccount.set(accountId, own);
    else ofAccount.delete(accountId);
    return own;
  };
  return {
    open(accountId) {
      let kept = 0;
      let isOver = false;
      const note = (bytes: number) => {
        if (isOver) return 0;
        kept += bytes;
        return add(accountId, bytes);
      };
      return {
        keep: (bytes) => note(bytes) <= perAccount && all <= inAll,
        drop: (bytes) => void note(-bytes),
        free() {
          note(-kept);
          isOver = true;
        },
      };
    },
  };
}
