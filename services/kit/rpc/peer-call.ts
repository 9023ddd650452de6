// Says what goes with a call from one service to another, and turns it into headers where a wire lies between them.

import type { CallOptions } from "@connectrpc/connect";
import { type StopSignal, signalOf } from "../base/stop.ts";
import { affinityHeader, affinityOf } from "./affinity.ts";
import { callHeaders, type Principal } from "./principal.ts";

/** The facts about a call of another service, beside its request. In one process they are handed over. Over a wire they are headers. */
export interface PeerCall {
  principal: Principal;
  requestId: string;
  /** Aborts when the answer is not needed any more. The call then rejects with the reason. */
  signal: StopSignal;
  /** Milliseconds until the call fails with SERVICE_UNAVAILABLE. Absent: its caller keeps the deadline. */
  timeoutMs?: number;
}

/** The options of a call over the wire. Calls with the same idempotency key of a caller are sent to one replica, where they meet. */
export function wireOptions(
  { principal, requestId, signal, ...bounds }: PeerCall,
  idempotencyKey: string | undefined,
): CallOptions & { signal: AbortSignal } {
  const affinity =
    idempotencyKey === undefined ? {} : { [affinityHeader]: affinityOf(principal, idempotencyKey) };
  const headers = { ...callHeaders(principal, requestId), ...affinity };
  return { headers, signal: signalOf(signal), ...bounds };
}
