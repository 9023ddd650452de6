// Has an idle process collect its garbage, so that it does not hold memory that a load has left.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Milliseconds between two looks. A process that has become idle is noticed at the second look after that. */
const everyMs = 5_000;
/** The most cores that an idle process uses. Its timers take a fortieth of one. */
const idleCores = 0.05;
/** Bytes that are worth a collection, which stops the event loop for some 100 ms. A request leaves far less than that. */
const worthBytes = 32 * 1_024 * 1_024;
/** Milliseconds from one collection to another one, for what threads held. They end after 15 s without work. */
const againMs = 20_000;

/** A process at one look. */
interface Look {
  /** Steady time. */
  atMs: number;
  /** CPU time of all threads so far. */
  cpuMs: number;
  residentBytes: number;
}

/** Decides when an idle process collects its garbage: where it has grown since the last time, and once more after that. */
export class IdleMemory {
  #last: Look | undefined;
  /** The least resident memory since the last collection. */
  #leastBytes = 0;
  /** When the other collection is due. */
  #againAtMs = Number.POSITIVE_INFINITY;

  /** Was the process idle since the last look, and is there something to collect? */
  isDue(look: Look): boolean {
    const last = this.#last;
    this.#last = look;
    this.#leastBytes = Math.min(this.#leastBytes, look.residentBytes);
    if (!last) return false;
    const cores = (look.cpuMs - last.cpuMs) / (look.atMs - last.atMs);
    if (cores > idleCores) return false;
    const hasGrown = look.residentBytes > this.#leastBytes + worthBytes;
    const isDue = hasGrown || look.atMs >= this.#againAtMs;
    if (isDue) this.#againAtMs = hasGrown ? look.atMs + againMs : Number.POSITIVE_INFINITY;
    return isDue;
  }

  /** Notes what a collection left. */
  collected(residentBytes: number): void {
    this.#leastBytes = residentBytes;
  }
}

/**
 * Gives memory back while the process has no requests. V8 itself collects what a load left when the rate of allocations makes it
 * necessary. An idle process has no such rate, so V8 would keep hundreds of MiB of garbage for minutes.
 */
export function letIdleMemoryGo(): Disposable {
  const memory = new IdleMemory();
  const look = () => {
    if (!memory.isDue(lookAtProcess())) return;
    collectAll();
    memory.collected(process.memoryUsage.rss());
  };
  const timer = setInterval(look, everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function lookAtProcess(): Look {
  const { user, system } = process.cpuUsage();
  return {
    atMs: performance.now(),
    cpuMs: (user + system) / 1_000,
    residentBytes: process.memoryUsage.rss(),
  };
}

/** Collects everything, and frees pages that V8 keeps for more. V8 shows its collector only to a context that is made under its flag. */
function collectAll(): void {
  setFlagsFromString("--expose-gc");
  try {
    runInNewContext('gc({ type: "major", execution: "sync", flavor: "last-resort" })');
  } finally {
    // The flags are part of what V8 compares before it takes compiled code from its cache.
    setFlagsFromString("--no-expose-gc");
  }
}
