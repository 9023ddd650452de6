// Closes an account in all services: ends its keys, has text and media erase its data, and reports it closed to auth at the end.
// The console and the command take one account a step on. Gateways do the same for all accounts again and again.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Logger } from "#kit/base/logger.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { ClosingAccount } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Peers } from "./peers.ts";

/**
 * Least milliseconds of a closing. An upload that had begun may arrive this late, and is erased with the rest. Existing data is erased
 * at once.
 */
export const closingLeastMs = 12 * 60_000;
/** Milliseconds between two searches for accounts that are being closed. */
const lookMs = 5_000;
/** Calls of one service in a row. Each erases a batch. Then other accounts get their turn. */
const maxRounds = 20;

/** The services that closing calls. */
type ClosingPeers = Pick<Peers, "auth" | "billing" | "text" | "media">;

/**
 * Drives an account's closing one step on. It ends the account's keys and has the services erase its data. It reports the account
 * closed once all its work, holds and data are gone. Any process may do it, at any time, even several at once.
 */
export async function driveClosing(
  { account, keyIds }: Pick<ClosingAccount, "account" | "keyIds">,
  peers: ClosingPeers,
  clock: Pick<Clock, "now">,
): Promise<void> {
  if (!account?.closingTime) return;
  const { accountId, closingTime } = account;
  await peers.auth.advanceClosing({ accountId });
  // Before remaining data is checked. An account without keys gets no new hold, so a later hold was open before.
  const { usdMicros, credits } = await peers.billing.getBalance({ accountId });
  const isHeld = (usdMicros?.reserved ?? 0n) > 0n || (credits?.reserved ?? 0n) > 0n;
  const erased = await Promise.all([
    untilOver(() => peers.text.eraseAccount({ accountId, keyIds })),
    untilOver(() => peers.media.eraseAccount({ accountId, keyIds })),
    peers.billing.eraseAlerts({ accountId }).then(() => true),
  ]);
  const isLongAgo = clock.now() - timestampMs(closingTime) >= closingLeastMs;
  const isOver = !isHeld && isLongAgo && erased.every((one) => one);
  if (isOver) await peers.auth.advanceClosing({ accountId, isOver });
}

async function untilOver(erase: () => Promise<{ isOver: boolean }>): Promise<boolean> {
  for (let round = 0; round < maxRounds; round++) if ((await erase()).isOver) return true;
  return false;
}

/** Drives on all accounts that are being closed, until `signal` aborts. Never rejects. */
export async function driveClosings(
  { clock, log, peers }: { clock: Clock; log: Logger; peers: ClosingPeers },
  signal: AbortSignal,
): Promise<void> {
  let failed = false;
  while (!signal.aborted) {
    try {
      const { accounts } = await peers.auth.listClosingAccounts({});
      for (const account of accounts) await driveClosing(account, peers, clock);
      failed = false;
    } catch (error) {
      if (!failed && !signal.aborted) log.warn({ err: error }, "accounts could not be closed yet");
      failed = true;
    }
    await clock.sleep(lookMs, signal).catch(() => {});
  }
}
