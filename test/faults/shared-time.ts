import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import type { Clock } from "#kit/time/clock.ts";

/**
 * The one time of a run's processes. It goes by steps, not by the machine's clock: each step waits until every living process has
 * taken the one before, and its database has answered since. So hours pass in seconds, and where the machine, a process or a
 * database stands still, time does, and no lease ends that its worker could have renewed.
 */
export interface SharedTime extends AsyncDisposable {
  clock: Clock;
  /** Time waits for this process as soon as that follows, until it ends. Is to be given what it says; true where that was about time. */
  enlist(child: ChildProcess): (said: { kind: string }) => boolean;
}

/** What a process says of time on its standard output. */
export type TimeSaid =
  /** It listens. */
  | { kind: "follows" }
  /** It has taken the last step. */
  | { kind: "lived" };

/** So long before the machine's time it begins, in ms: blobs are dated by the machine, and none is to be old before its time. */
const behindMs = 12 * 3_600_000;

/** Begins one. */
export function startSharedTime(options: {
  /** Of each step, in ms of the shared time: no more than the shortest pauses between two looks of the product. */
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
        // What a process that was killed said before may be read afterwards.
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

/** In a process of a run: follows the shared time, which standard input tells; other words there go to `hear`. */
export async function followTime(hear: (word: unknown) => void): Promise<{
  clock: Clock;
  /** From now on a step is taken only when `work` has answered. */
  liveBy(work: () => Promise<unknown>): void;
  /** Real ms for which the last step has waited for `work`; 0: it was taken. */
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
    // That a database is in no state to answer is an answer: the world that asks it deals with it.
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
  /** It is now this time, in ms since the epoch. */
  tell(nowMs: number): void;
}

/** A clock that stands still until it is told the time; sleepers whose time has come wake up then, in its order. */
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
