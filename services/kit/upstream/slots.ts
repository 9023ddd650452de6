import { UpstreamError } from "./errors.ts";

/** How a place is waited for. */
export interface SlotRequest {
  /** What is bounded, e.g. an upstream's name. */
  name: string;
  /** Places; 0: no bound. */
  max: number;
  /** Waiting longer than this is `unreachable` with `timedOut`. */
  waitMs: number;
  signal: AbortSignal;
}

/** Bounds what is in flight by name, first come, first served. */
export interface Slots {
  /** Resolves with a function that gives the place back (once; calling again does nothing). */
  acquire(request: SlotRequest): Promise<() => void>;
}

interface Queue {
  taken: number;
  waiting: (() => void)[];
}

/** Makes {@link Slots}, all free. */
export function createSlots(): Slots {
  const queues = new Map<string, Queue>();
  return {
    async acquire({ name, max, waitMs, signal }) {
      if (max <= 0) return () => {};
      const queue = queues.get(name) ?? { taken: 0, waiting: [] };
      queues.set(name, queue);
      if (queue.taken < max) queue.taken++;
      else await turn(queue, waitMs, signal);
      return giveBack(queue);
    },
  };
}

/** Waits to be handed a place by its holder, so that no later caller slips in between. */
function turn(queue: Queue, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      queue.waiting = queue.waiting.filter((waiter) => waiter !== enter);
    };
    const enter = () => {
      leave();
      resolve();
    };
    const onAbort = () => {
      leave();
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      leave();
      reject(new UpstreamError("unreachable", { timedOut: true }));
    }, waitMs);
    signal.addEventListener("abort", onAbort, { once: true });
    queue.waiting.push(enter);
    if (signal.aborted) onAbort();
  });
}

function giveBack(queue: Queue): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    const next = queue.waiting[0];
    if (next) next();
    else queue.taken--;
  };
}
