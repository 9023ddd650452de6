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

/** How long something took. */
interface Span {
  ms: number;
  /** The share of the machine that other processes had meanwhile. */
  othersShare: number;
}

/** What one turn took: its real thing, and its idle one. */
export interface TurnTimes extends Span {
  idleMs: number;
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
  const turn = { ...span, idleMs: 0 };
  if (!isPrompt(promiseMs, turn, slowness)) throw new Error(late(promiseMs, [turn]));
  return result;
}

/**
 * The same in turns, for what can be compared with an idle thing of its kind in the same second: one turn must have the real
 * thing within `promiseMs` and its idle thing. A turn on a quiet machine is the last. `of`: which counts where a turn has several
 * real ones; default the worst.
 */
export async function promptlyInTurns(
  promiseMs: number,
  takeTurn: (turn: Turn) => Promise<void>,
  { of = "worst" }: { of?: "worst" | "median" } = {},
): Promise<void> {
  const turns: TurnTimes[] = [];
  while (turns.length < maxTurns) {
    let idleMs = 0;
    const spans: Span[] = [];
    await takeTurn({
      async idle(work) {
        const { result, ms } = await measured(work);
        idleMs = Math.max(idleMs, ms);
        return result;
      },
      async real(work) {
        const { result, ...span } = await measured(work);
        spans.push(span);
        return result;
      },
    });
    const ordered = spans.toSorted((one, other) => ownMs(one) - ownMs(other));
    const span = ordered.at(of === "worst" ? -1 : Math.floor(ordered.length / 2));
    if (!span) throw new Error("a turn without its real thing");
    const times = { ...span, idleMs };
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
  const tookMs = ownMs(turn) - turn.idleMs;
  // Measuring takes its time, which what is in time need not wait for.
  return tookMs <= promiseMs || tookMs <= promiseMs * slow();
}

function ownMs({ ms, othersShare: share }: Span): number {
  return ms * (1 - share);
}

async function measured<T>(
  work: () => Promise<T>,
  overAtMs: (result: Awaited<T>) => number = () => performance.now(),
): Promise<Span & { result: Awaited<T> }> {
  const before: MachineReading | undefined = readMachine();
  const fromMs = performance.now();
  const result = await work();
  const ms = overAtMs(result) - fromMs;
  return { result, ms, othersShare: othersShare(before, readMachine()) };
}

function late(promiseMs: number, turns: readonly TurnTimes[]): string {
  const said = turns.map(({ idleMs, ms, othersShare: share }) => {
    const idle = idleMs > 0 ? `, idle ${Math.round(idleMs)} ms` : "";
    return `${Math.round(ms)} ms${idle}, ${Math.round(100 * share)} % of the machine with others`;
  });
  return `${promiseMs} ms were promised, and it took ${said.join("; ")}`;
}
