/** The figures of one target in one run. */
export type Sample = Partial<Record<Figure, number>>;

/** `PerCoreSecond`: for each second of CPU time, however long that took. */
export type Figure =
  | "requestsPerSecond"
  | "requestsPerCoreSecond"
  | "p50Ms"
  | "firstDeltaMs"
  | "deltasPerSecond"
  | "deltasPerCoreSecond"
  | "megabytesPerSecond"
  | "startMs"
  | "idleMib"
  | "failures";

/** A target that is measured in turn with others. */
export interface Contestant<Name extends string = string> {
  name: Name;
  measure(seconds: number): Promise<Sample>;
}

/** The results of all rounds: by round, then by name. */
export type Rounds = readonly ReadonlyMap<string, Sample>[];

/** The number of rounds, and their length. */
export interface RoundOptions {
  rounds: number;
  seconds: number;
  /** Seconds of each target that are not counted, because code is compiled after it has run for a while. */
  warmUpSeconds: number;
  /** Aborted between two runs. */
  signal: AbortSignal;
}

/** Measures all of them, one after the other, again and again, so that a drift of the machine changes all figures equally. */
export async function alternate(
  contestants: readonly Contestant[],
  { rounds, seconds, warmUpSeconds, signal }: RoundOptions,
): Promise<{ warmUp: ReadonlyMap<string, Sample>; rounds: Rounds }> {
  const round = async (duration: number) => {
    const samples = new Map<string, Sample>();
    for (const one of contestants) {
      signal.throwIfAborted();
      samples.set(one.name, await one.measure(duration));
    }
    return samples;
  };
  const warmUp = await round(warmUpSeconds);
  const measured: ReadonlyMap<string, Sample>[] = [];
  for (let i = 0; i < rounds; i++) measured.push(await round(seconds));
  return { warmUp, rounds: measured };
}
