import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import type { Clock } from "#kit/time/clock.ts";

/**
 * The one clock of a run's processes. It moves in steps, independent of the machine's clock. Each step waits until every living process has
 * taken the one before, and its database has answered since. So hours pass in seconds. Where the machine, a process or a database pauses,
 * the clock does too, and no lease ends that its worker could have renewed.
 */
export interface SharedTime extends AsyncDisposable {
  clock: Clock;
  /**
   * Once this process follows, the clock waits for it until it ends. The result is called with each of its lines. It answers true for lines
   * about the clock.
   */
  enlist(child: ChildProcess): (said: { kind: string }) => boolean;
}

/** A line about the clock on a process's standard output. */
export type TimeSaid =
  /** It follows the clock. */
  | { kind: "follows" }
  /** It has taken the last step. */
  | { kind: "lived" };

/** The clock begins this many ms behind the machine's. Blobs have times by the machine's clock, and none must seem old too early. */
const behindMs = 12 * 3_600_000;

/** Starts a clock. */
export function startSharedTime(options: {
  /** The length of a step in ms of the shared time. It is at most the shortest pause between two looks of the product. */
  stepMs: number;
  /** Real ms between two steps at least. */
  everyMs: number;
}): SharedTime {
  const clock = toldClock(Date.now() - behindMs);
  const followers = new Set<(nowMs: number) => Promise<void>>();
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const nowMs = clock.now() + options.stepMs;
      clock.tell(nowMs);
      await Promise.all([delay(options.everyMs), ...[...followers].map((live) => live(nowMs))]);
    }
  })();
  return {
    clock,
    enlist(child) {
      let lived = Promise.withResolvers<void>();
      const live = (nowMs: number) => {
        lived = Promise.withResolvers();
        child.stdin?.write(`${JSON.stringify({ time: nowMs })}\n`);
        return lived.promise;
      };
      child.once("exit", () => {
        followers.delete(live);
        lived.resolve();
      });
      return ({ kind }) => {
        if (kind === "lived") lived.resolve();
        else if (kind !== "follows") return false;
        // Lines of a killed process may be read after its death.
        else if (child.exitCode === null && child.signalCode === null) followers.add(live);
        return true;
      };
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      await running;
    },
  };
}

/** In a process of a run: follows the shared time from standard input. `hear` gets other lines. */
export async function followTime(hear: (word: unknown) => void): Promise<{
  clock: Clock;
  /** From now on a step is taken only after `work` has answered. */
  liveBy(work: () => Promise<unknown>): void;
  /** Real ms for which the last step has waited for `work`. 0 after it was taken. */
  waitsMs(): number;
}> {
  const first = Promise.withResolvers<ToldClock>();
  let clock: ToldClock | undefined;
  let work: () => Promise<unknown> = () => turn();
  let beganAtMs: number | undefined;
  const take = async (nowMs: number) => {
    beganAtMs = performance.now();
    if (clock) clock.tell(nowMs);
    else {
      clock = toldClock(nowMs);
      first.resolve(clock);
    }
    // An error of the database is an answer too. The world that uses the database handles it.
    await work().catch(() => {});
    beganAtMs = undefined;
    say({ kind: "lived" });
  };
  createInterface({ input: process.stdin }).on("line", (line) => {
    const word = JSON.parse(line);
    if (typeof word.time === "number") void take(word.time);
    else hear(word);
  });
  say({ kind: "follows" });
  return {
    clock: await first.promise,
    liveBy(next) {
      work = next;
    },
    waitsMs: () => (beganAtMs === undefined ? 0 : Math.round(performance.now() - beganAtMs)),
  };
}

function say(said: TimeSaid): void {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

interface ToldClock extends Clock {
  /** Sets the time, in ms since the epoch. */
  tell(nowMs: number): void;
}

/** A clock that changes only by `tell`. Sleeps that are over then end, in the order of their times. */
function toldClock(startMs: number): ToldClock {
  let now = startMs;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  return {
    now: () => now,
    steady: () => now - startMs,
    tell(nowMs) {
      now = nowMs;
      const due = [...sleepers].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
      for (const { wake } of due) wake();
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const leave = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", leave);
          resolve();
        };
        const sleeper = { at: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", leave, { once: true });
      }),
  };
}
