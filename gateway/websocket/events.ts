// Counts sockets, and how requests on them end. Without logs: each request has its line as over HTTP.

import type { Metrics } from "#kit/base/metrics.ts";

/** How a request of a socket ended. `warmed`: it asked for no output. `left`: its caller left before its end. */
export type CreateOutcome = "completed" | "incomplete" | "failed" | "refused" | "left" | "warmed";

/** Why a socket does not have a response. `evicted`: it had it, and dropped it. `room`: it had no room to keep it. */
export type MissReason = "other_socket" | "evicted" | "room";

/** Counts of sockets. */
export interface SocketEvents {
  opened(): void;
  closed(code: number): void;
  ended(outcome: CreateOutcome): void;
  notFound(reason: MissReason): void;
  /** Bytes of kept conversations that came or went. */
  kept(bytes: number): void;
}

/** Codes of closing frames that get a label of their own. A caller may send any of 2,000 others. */
const knownCodes: ReadonlySet<number> = new Set([
  1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013,
]);

/** Makes the counters. */
export function createSocketEvents(metrics: Metrics): SocketEvents {
  const open = metrics
    .gauge("genmesh_websocket_connections", "WebSockets for responses that are open.", [])
    .of();
  const creates = metrics.counter(
    "genmesh_websocket_creates_total",
    "Requests on WebSockets that ended, by outcome.",
    ["outcome"],
  );
  const closes = metrics.counter(
    "genmesh_websocket_closes_total",
    "WebSockets that closed, by the code of the closing frame.",
    ["code"],
  );
  const chains = metrics
    .gauge("genmesh_websocket_chain_bytes", "Bytes of conversations kept for WebSockets now.", [])
    .of();
  const misses = metrics.counter(
    "genmesh_websocket_not_found_total",
    "Previous responses that a WebSocket did not have, by reason.",
    ["reason"],
  );
  return {
    opened() {
      open.value++;
    },
    closed(code) {
      open.value--;
      closes.of(knownCodes.has(code) ? String(code) : "other").value++;
    },
    ended(outcome) {
      creates.of(outcome).value++;
    },
    notFound(reason) {
      misses.of(reason).value++;
    },
    kept(bytes) {
      chains.value += bytes;
    },
  };
}
