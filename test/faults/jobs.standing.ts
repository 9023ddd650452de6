import { type Logger, pino } from "pino";
import type { JobsWorld } from "../contract/jobs.world.ts";

/** A question for a process's state, where a round does not come to rest. */
export interface Question {
  /** Jobs that are not at rest. */
  jobIds: readonly string[];
}

/** Real ms for a question of a process in trouble to its store. */
const lookWithinMs = 3_000;
/** Lines of its log that a process keeps, and characters of each. */
const [linesKept, lineCharacters] = [8, 400];

/** Facts that show why a process does not continue: its time, its own view of the jobs and of due work, and its errors. */
export async function standing(
  { store, clock }: JobsWorld,
  { jobIds }: Question,
  { waitsMs, lines }: { waitsMs: () => number; lines: readonly string[] },
): Promise<string> {
  const now = clock.now();
  const look = async (what: string, ask: () => Promise<unknown>) => {
    const late = new Promise((resolve) => setTimeout(resolve, lookWithinMs, "no answer"));
    const found = await Promise.race([ask(), late]).catch((error) => `${error} ${error.cause}`);
    return `${what}: ${JSON.stringify(found)}`;
  };
  const looks = await Promise.all([
    look("any due by index", () => store.isAnyDue(["settling", "failing"], now)),
    ...jobIds.map((jobId) =>
      look(jobId, async () => {
        const job = await store.find(jobId);
        const times = {
          dueInMs: (job?.dueAt ?? 0) - now,
          leaseInMs: (job?.lease?.until ?? 0) - now,
        };
        return { state: job?.state, ...times, fence: job?.fence, events: job?.events.slice(-4) };
      }),
    ),
  ]);
  const steps = waitsMs() === 0 ? "its step is taken" : `its step waits for ${waitsMs()} ms`;
  return [`process ${process.pid} at ${now}: ${steps}`, ...looks, ...lines].join("\n");
}

/** A log that keeps its last lines of trouble. */
export function createLogMemory(): { log: Logger; lines: readonly string[] } {
  const lines: string[] = [];
  const write = (line: string) => {
    lines.push(line.slice(0, lineCharacters).trimEnd());
    if (lines.length > linesKept) lines.shift();
  };
  const serializers = { err: (error: Error) => `${error} ${error.cause ?? ""}` };
  return { log: pino({ level: "warn", base: null, serializers }, { write }), lines };
}
