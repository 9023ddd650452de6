import { createHook } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector/promises";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { GCProfiler, getHeapStatistics, setFlagsFromString } from "node:v8";

// How `bench/path.ts` counts the work of this process. Each count is of all work that runs while it waits for `work`.

const root = new URL("..", import.meta.url).href;

/** The number of calls of each function, by its place and name. */
export type Calls = ReadonlyMap<string, number>;

/**
 * Makes a counter of calls of the product's functions. From then on V8 optimizes nothing in this process: it would not count the calls of
 * a function that it has put into its caller.
 */
export async function callCounter(stack: AsyncDisposableStack) {
  for (const flag of ["--no-turbofan", "--no-maglev"]) setFlagsFromString(flag);
  const session = new Session();
  session.connect();
  stack.defer(() => session.disconnect());
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return async (work: () => Promise<void>): Promise<Calls> => {
    // A look sets the counts to 0.
    await session.post("Profiler.takePreciseCoverage");
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return new Map(result.flatMap(callsIn));
  };
}

/** Functions of the product that ran, without the bodies of modules. */
function callsIn({ url, functions }: Profiler.ScriptCoverage): [place: string, count: number][] {
  const file = url.startsWith(root) ? url.slice(root.length) : "";
  if (!/^(services|gateway)\//.test(file)) return [];
  const source = readFileSync(new URL(url), "utf8");
  return functions.flatMap(({ functionName, ranges: [range] }): [string, number][] => {
    if (!range || range.count === 0 || range.startOffset === 0) return [];
    const lines = source.slice(0, range.startOffset + 1).split("\n");
    return [[`${file}:${lines.length}:${lines.at(-1)?.length} ${functionName}`, range.count]];
  });
}

/** Calls that are in each of these runs, with their least number. A function that runs only in some of them is not on their way. */
export function inAll(runs: readonly Calls[]): Calls {
  const least = [...(runs[0]?.keys() ?? [])].map((place): [string, number] => {
    return [place, Math.min(...runs.map((calls) => calls.get(place) ?? 0))];
  });
  return new Map(least.filter(([, count]) => count > 0));
}

/** Bytes that V8 allocates on its heap. Bytes of buffers are beside it, and are not counted. */
export async function bytesOf(work: () => Promise<void>): Promise<number> {
  const profiler = new GCProfiler();
  const begin = getHeapStatistics().used_heap_size;
  profiler.start();
  await work();
  const { statistics } = profiler.stop();
  const end = getHeapStatistics().used_heap_size;
  const before = [...statistics.map((one) => one.beforeGC.heapStatistics.usedHeapSize), end];
  const after = [begin, ...statistics.map((one) => one.afterGC.heapStatistics.usedHeapSize)];
  return before.reduce((sum, used, at) => sum + used - (after[at] ?? 0), 0);
}

/** Counts promises: of the product, of Node and of libraries. */
export async function promisesOf(work: () => Promise<void>): Promise<number> {
  let made = 0;
  const hook = createHook({
    init(_, type) {
      if (type === "PROMISE") made++;
    },
  });
  hook.enable();
  await work();
  hook.disable();
  return made;
}

/** The methods that run SQL. */
const running = [
  [StatementSync.prototype, ["all", "get", "run", "iterate"]],
  [DatabaseSync.prototype, ["exec"]],
] as const;

/** Counts SQL statements, with those that begin and end a transaction. */
export async function statementsOf(work: () => Promise<void>): Promise<number> {
  let count = 0;
  using stack = new DisposableStack();
  for (const [prototype, names] of running) {
    for (const name of names) {
      const target = prototype as unknown as Record<string, (...values: unknown[]) => unknown>;
      const own = target[name];
      if (!own) throw new Error(`SQLite has no ${name}`);
      target[name] = function counted(...values) {
        count++;
        return own.apply(this, values);
      };
      stack.defer(() => {
        target[name] = own;
      });
    }
  }
  await work();
  return count;
}

/** Globals whose uses can be counted. */
type Global = "AbortController" | "Map" | "Set" | "setInterval" | "setTimeout";

/** Counts how often these are constructed or called, by the product and by libraries. Node's own code is not counted. */
export async function usesOf(names: readonly Global[], work: () => Promise<void>): Promise<number> {
  let uses = 0;
  using stack = new DisposableStack();
  const globals = globalThis as unknown as Record<Global, () => void>;
  for (const name of names) {
    const own = globals[name];
    globals[name] = new Proxy(own, {
      construct(target, values, newTarget) {
        uses++;
        return Reflect.construct(target, values, newTarget);
      },
      apply(target, self, values) {
        uses++;
        return Reflect.apply(target, self, values);
      },
    });
    stack.defer(() => {
      globals[name] = own;
    });
  }
  await work();
  return uses;
}
