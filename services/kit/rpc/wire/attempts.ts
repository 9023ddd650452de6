// Decides whether a call that failed at one address is sent to another one.

import { Code, ConnectError } from "@connectrpc/connect";
import type { PeerPool, PickedPeer } from "../wire-pool.ts";
import type { Call } from "./call.ts";
import { maxAttempts, maxUnreachable } from "./limits.ts";

/** An attempt under way. */
interface Attempted<T> {
  exchange: { readonly isSent: boolean; readonly isAnswered: boolean };
  reply: Promise<T>;
}

/** Tries addresses until one answers, or until trying again would not be right. */
export async function attempts<T>(options: {
  pool: PeerPool;
  call: Call;
  isRepeatable: boolean;
  /** See `PeerPool.pick`. */
  affinity: string | undefined;
  attempt: (peer: PickedPeer) => Attempted<T>;
}): Promise<T> {
  const { call, isRepeatable } = options;
  const tried: string[] = [];
  const unreachable = new Set<string>();
  let hasLookedAgain = false;
  let last: unknown;
  /** Looks the name up once, where no address took a connection: all may have been replaced at once. */
  const lookAgain = async () => {
    if (hasLookedAgain || !options.pool.lookAgain) throw last;
    hasLookedAgain = true;
    await call.race(options.pool.lookAgain());
  };
  for (;;) {
    const peer = await pick(options, tried).catch((error: unknown) => {
      call.throwIfAborted();
      throw last ?? noAddress(error);
    });
    if (!peer) throw last ?? noAddress();
    if (call.isAborted || unreachable.has(peer.origin)) {
      // There is no other address, and this one did not even take a connection.
      peer.done(call.isAborted ? "ok" : "unreachable");
      call.throwIfAborted();
      await lookAgain();
      continue;
    }
    const { exchange, reply } = options.attempt(peer);
    try {
      return await reply;
    } catch (error) {
      last = error;
      tried.push(peer.origin);
      if (!exchange.isSent) unreachable.add(peer.origin);
      const isHarmless = !exchange.isSent || (isRepeatable && !exchange.isAnswered);
      const isAway = error instanceof ConnectError && error.code === Code.Unavailable;
      const isEnough = tried.length - unreachable.size >= maxAttempts;
      if (!isAway || !isHarmless || call.isAborted || isEnough) throw error;
      const most = hasLookedAgain ? 2 * maxUnreachable : maxUnreachable;
      if (unreachable.size >= most) await lookAgain();
    }
  }
}

async function pick(
  { pool, call, affinity }: { pool: PeerPool; call: Call; affinity: string | undefined },
  tried: readonly string[],
): Promise<PickedPeer | undefined> {
  const picked = pool.pick(tried, affinity);
  if (!(picked instanceof Promise)) return picked;
  const found = picked.then((peer) => {
    // The address was found after the caller has left, so it is given back unused.
    if (call.isAborted) peer?.done("ok");
    return peer;
  });
  return call.race(found);
}

function noAddress(cause?: unknown): ConnectError {
  const text = "no address of the peer is known";
  return new ConnectError(text, Code.Unavailable, undefined, undefined, cause);
}
