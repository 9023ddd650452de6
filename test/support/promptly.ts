import { type MachineReading, othersShare, readMachine } from "./machine.ts";
import { slowness } from "./reference-machine.ts";

/** Turns that a busy machine gets to show one thing in time. */
const maxTurns = 5;

/** Takes the times of one turn. */
export interface Turn {
  /** An idle thing of the same kind: what the machine itself takes for it. */
  idle<T>(work: () => Promise<T>): Promise<T>;
  /** What was promised. */
  real<T>(work: () => Promise<T>): Promise<T>;
}

/** What one turn took. */
export interface TurnTimes {
  idleMs: number;
  realMs: number;
  /** The share of the machine that other processes had while the real thing took place. */
  othersShare: number;
}

/**
 * Does the work, which must be over within `promiseMs` and what the machine itself takes. A quiet machine takes nothing.
 * `overAtMs`: when it was over by `performance.now()`, where the result says that better than the moment of its coming.
 */
export async function promptly<T>(
  promiseMs: number,
  work: () => T | Promise<T>,
  overAtMs: (result: Awaited<T>) => number = () => performance.now(),
): Promise<Awaited<T>> {
  const { result, ...span } = await measured(async () => work(), overAtMs);
  const turn = { idleMs: 0, realMs: span.ms, othersShare: span.othersShare };
  if (!isPrompt(promiseMs, turn, slowness)) throw new Error(late(promiseMs, [turn]));
  return result;
}

/**
 * The same in turns, for what can be compared with an idle thing of its kind in the same second: one turn must have the real
 * thing within `promiseMs` and its idle thing. A turn on a quiet machine is the last.
 */
export async function promptlyInTurns(
  promiseMs: number,
  takeTurn: (turn: Turn) => Promise<void>,
): Promise<void> {
  const turns: TurnTimes[] = [];
  while (turns.length < maxTurns) {
    const times = { idleMs: 0, realMs: Number.NaN, othersShare: 0 };
    await takeTurn({
      async idle(work) {
        const { result, ms } = await measured(work);
        times.idleMs = Math.max(times.idleMs, ms);
        return result;
      },
      async real(work) {
        const { result, ...span } = await measured(work);
        Object.assign(times, { realMs: span.ms, othersShare: span.othersShare });
        return result;
      },
    });
    turns.push(times);
    if (isPrompt(promiseMs, times, slowness)) return;
    if (times.othersShare === 0) break;
  }
  throw new Error(late(promiseMs, turns));
}

/**
 * Was it in time? Of the time that passed, what the machine gave to others is not its own; and a machine that is slower than
 * that of the reference (`slow` times) has so much more.
 */
export function isPrompt(promiseMs: number, turn: TurnTimes, slow: () => number): boolean {
  const ownMs = turn.realMs * (1 - turn.othersShare) - turn.idleMs;
  // Measuring takes its time, which what is in time need not wait for.
  return ownMs <= promiseMs || ownMs <= promiseMs * slow();
}

async function measured<T>(
  work: () => Promise<T>,
  overAtMs: (result: Awaited<T>) => number = () => performance.now(),
): Promise<{ result: Awaited<T>; ms: number; othersShare: number }> {
  const before: MachineReading | undefined = readMachine();
  const fromMs = performance.now();
  const result = await work();
  const ms = overAtMs(result) - fromMs;
  return { result, ms, othersShare: othersShare(before, readMachine()) };
}

function late(promiseMs: number, turns: readonly TurnTimes[]): string {
  const said = turns.map(({ idleMs, realMs, othersShare: share }) => {
    const idle = idleMs > 0 ? `, idle ${Math.round(idleMs)} ms` : "";
    return `${Math.round(realMs)} ms${idle}, ${Math.round(100 * share)} % of the machine with others`;
  });
  return `${promiseMs} ms were promised, and it took ${said.join("; ")}`;
}
