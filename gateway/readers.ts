import type { Socket } from "node:net";
import type { Clock } from "#kit/time/clock.ts";
import { readerSweepMs, stalledReaderMs } from "./limits.ts";

/** Where a connection's answer stood when it was last seen to move. */
interface Standing {
  /** What is still to be taken, and was written, by then. */
  mark: string;
  movedAtMs: number;
}

/** Knows which callers take nothing of their answers. */
export interface ReaderWatch {
  /** Looks at a connection until it closes. */
  watch(socket: Socket): void;
  /** For how long the caller has taken nothing of what there is for it, in ms, as of the last look. */
  stillMs(socket: Socket): number;
}

/**
 * Closes connections whose caller takes nothing of its answer for too long: upstream, memory and a place are kept for it.
 * Its handler hears of that as of any caller that leaves.
 */
export function createReaderWatch(clock: Clock): ReaderWatch {
  const open = new Map<Socket, Standing>();
  let sweeping = false;
  // One timer for all connections: nearly all answers are taken long before it fires.
  const sweep = async () => {
    sweeping = true;
    while (open.size > 0) {
      await clock.sleep(readerSweepMs);
      const nowMs = clock.steady();
      for (const [socket, standing] of open) {
        if (!isStalled(socket, standing, nowMs)) continue;
        open.delete(socket);
        socket.destroy();
      }
    }
    sweeping = false;
  };
  return {
    watch(socket) {
      if (open.has(socket) || socket.destroyed) return;
      open.set(socket, { mark: "", movedAtMs: clock.steady() });
      socket.once("close", () => open.delete(socket));
      if (!sweeping) void sweep();
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

/** Changes when the caller takes something; undefined where it has nothing to take. */
function markOf(socket: Socket): string | undefined {
  if (!(socket.writableLength > 0)) return undefined;
  // Of one large write only the handle tells how much has gone; where Node hides it, whole writes count.
  const handle = (socket as { _handle?: { writeQueueSize?: number } | null })._handle;
  return `${socket.bytesWritten} ${socket.writableLength} ${handle?.writeQueueSize ?? ""}`;
}
