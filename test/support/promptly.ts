import { type MachineReading, othersShare, readMachine } from "./machine.ts";
import { slowness } from "./reference-machine.ts";

/** Turns in which a busy machine must show one timely result. */
const maxTurns = 5;

/** Measures the parts of one turn. */
export interface Turn {
  /** Similar work without load, to measure the machine itself. */
  idle<T>(work: () => Promise<T>): Promise<T>;
  /** The promised work. */
  real<T>(work: () => Promise<T>): Promise<T>;
}

/** The duration of some work. */
interface Span {
  ms: number;
  /** The share of the machine that other processes had meanwhile. */
  othersShare: number;
}

/** The times of one turn: its real work, and its idle work. */
export interface TurnTimes extends Span {
  idleMs: number;
}

/**
 * Does the work. It must end within `promiseMs`, plus the time that other processes take on a busy machine. `overAtMs` is its end by
 * `performance.now()`, where the result shows that better than its arrival.
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
 * The same in turns, for work that can be compared with similar idle work of the same second. In one turn the real work must end within
 * `promiseMs` plus the idle work. A turn on a quiet machine is the last. `of` chooses one of several real works of a turn. The default is
 * the slowest.
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
 * Was the work in time? Time that the machine gave to other processes does not count. A machine that is `slow` times slower than the
 * reference has that much more time.
 */
export function isPrompt(promiseMs: number, turn: TurnTimes, slow: () => number): boolean {
  const tookMs = ownMs(turn) - turn.idleMs;
  // Measuring takes time, and is left out for work that is in time.
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
