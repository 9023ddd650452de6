// Closes connections whose callers do not read their answers, because memory and upstreams are kept for them.

import type { Socket } from "node:net";
import type { Clock } from "#kit/time/clock.ts";
import { readerSweepMs, stalledReaderMs } from "./limits.ts";
import { createSweep } from "./sweep.ts";

/** The state of a connection's answer when it last moved. */
interface Standing {
  /** The bytes still to be taken, and those written, at that time. */
  mark: string;
  movedAtMs: number;
}

/** Knows which callers take nothing of their answers. */
export interface ReaderWatch {
  /** Watches a connection until it closes. */
  watch(socket: Socket): void;
  /** For how long the caller has taken nothing of its waiting bytes, in ms, by the last check. */
  stillMs(socket: Socket): number;
}

/**
 * Closes connections whose caller takes nothing of its answer for too long, because upstream, memory and a place are kept for it. To
 * the handler it is a caller that leaves.
 */
export function createReaderWatch(clock: Clock): ReaderWatch {
  const open = new Map<Socket, Standing>();
  const look = () => {
    const nowMs = clock.steady();
    for (const [socket, standing] of open) {
      if (!isStalled(socket, standing, nowMs)) continue;
      open.delete(socket);
      socket.destroy();
    }
  };
  const sweep = createSweep(clock, open, { everyMs: readerSweepMs, look });
  return {
    watch(socket) {
      if (open.has(socket) || socket.destroyed) return;
      open.set(socket, { mark: "", movedAtMs: clock.steady() });
      socket.once("close", () => open.delete(socket));
      sweep();
    },
    stillMs(socket) {
      const standing = open.get(socket);
      const mark = markOf(socket);
      if (!standing || mark === undefined || mark !== standing.mark) return 0;
      return clock.steady() - standing.movedAtMs;
    },
  };
}

function isStalled(socket: Socket, standing: Standing, nowMs: number): boolean {
  const mark = markOf(socket);
  if (mark === undefined || mark !== standing.mark) {
    standing.mark = mark ?? "";
    standing.movedAtMs = nowMs;
    return false;
  }
  return nowMs - standing.movedAtMs >= stalledReaderMs;
}

/** Changes when the caller takes something. Undefined where it has nothing to take. */
function markOf(socket: Socket): string | undefined {
  if (!(socket.writableLength > 0)) return undefined;
  // Of one large write only the handle shows how much was sent. Where Node hides that, whole writes count.
  const handle = (socket as { _handle?: { writeQueueSize?: number } | null })._handle;
  // Bytes that are added behind those that wait, like a ping, are no progress.
  return `${socket.bytesWritten - socket.writableLength} ${handle?.writeQueueSize ?? ""}`;
}
