import { maxReplayBytesInAll, maxReplayBytesPerAccount } from "../base/limits.ts";

/** Room for what running streams keep for callers that join late. */
export interface ReplayRoom {
  /** What one stream of the account keeps. */
  open(accountId: string): ReplayBytes;
}

/** What one stream keeps. */
export interface ReplayBytes {
  /** Notes that it keeps so many bytes more; false where that is more than its account or the process has room for. */
  keep(bytes: number): boolean;
  /** So many of them are dropped. */
  drop(bytes: number): void;
  /** No caller reads it any more: all is given back, and nothing is noted from now on. */
  free(): void;
}

/** Makes {@link ReplayRoom}, all free. */
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
