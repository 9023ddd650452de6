import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLogger } from "#kit/base/logger.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { envToConfig } from "../services/host/config.ts";
import { startRoleAll } from "../services/host/role-all.ts";
import { catalogFor } from "./accounts.ts";
import { scratchFolder } from "./genmesh.ts";
import type { Order } from "./path-outside.ts";

// One process of genmesh within this process, for `bench/path.ts`. Its caller and its upstream are in another process.

const key = "key-of-the-bench-for-paths";
/** USD micros of the account: more than all requests can be charged. */
const balance = 1_000_000_000;
/** Turns of the event loop after an answer. By then the work that comes after its end is done. */
const turnsAfter = 10;

/** The deltas of an answer, or that it is JSON. */
export type Answer = "json" | { deltas: number };

/** A genmesh in this process, with time held still. */
export interface PathProcess {
  /** Sends requests, one after the other, and waits until they are done. */
  ask(answer: Answer, times?: number): Promise<void>;
  /** Counts the sleeps that the product asks its clock for during `work`. */
  sleepsOf(work: () => Promise<void>): Promise<number>;
}

/** The machine's clock until it is stopped. Then no timer of the product fires during a measurement, however long that takes. */
function stoppableClock(): Clock & { stop(): void; sleeps(): number } {
  let clock = systemClock;
  let sleeps = 0;
  return {
    now: () => clock.now(),
    steady: () => clock.steady(),
    sleep(ms, signal) {
      sleeps++;
      return clock.sleep(ms, signal);
    },
    sleeps: () => sleeps,
    stop() {
      const [nowMs, steadyMs] = [clock.now(), clock.steady()];
      clock = { now: () => nowMs, steady: () => steadyMs, sleep: sleepOn };
    },
  };
}

/** Ends only with its signal. */
function sleepOn(_: number, signal?: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const leave = () => reject(signal?.reason);
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  });
}

/** Starts it, its caller and its upstream. `stack` ends them. */
export async function startPathProcess(stack: AsyncDisposableStack): Promise<PathProcess> {
  const outside = fork(join(import.meta.dirname, "path-outside.ts"), { execArgv: [] });
  stack.defer(() => outside.disconnect());
  const next = messagesOf(outside);
  const port = Number(await next());
  const folder = await scratchFolder(stack);
  const catalog = join(folder, "catalog.json");
  await writeFile(catalog, JSON.stringify(catalogFor(port)));
  const config = envToConfig({
    ...{ PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0" },
    ...{ GENMESH_DATA_DIR: join(folder, "data"), GENMESH_CATALOG: catalog },
    ...{ GENMESH_BOOTSTRAP_API_KEY: key, GENMESH_BOOTSTRAP_USD_MICROS: `${balance}` },
  });
  const clock = stoppableClock();
  const options = { log: createLogger("silent"), signal: new AbortController().signal, clock };
  const { baseUrl } = stack.use(await startRoleAll(config, options));
  clock.stop();
  return {
    async sleepsOf(work) {
      const before = clock.sleeps();
      await work();
      return clock.sleeps() - before;
    },
    async ask(answer, times = 1) {
      const deltas = answer === "json" ? {} : answer;
      outside.send({ baseUrl, key, times, ...deltas } satisfies Order);
      await next();
      await settled();
    },
  };
}

/** Reads the messages of `child`. Each read rejects where the child has ended. */
function messagesOf(child: ChildProcess): () => Promise<unknown> {
  const ended = once(child, "exit").then((): never => {
    throw new Error("the caller and the upstream have ended");
  });
  // The child also ends after the last read.
  ended.catch(() => {});
  return async () => (await Promise.race([once(child, "message"), ended]))[0];
}

/** Lets the work after an answer's end run. It makes one promise, so that those of the product can be counted. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    let turns = 0;
    const turn = () => (++turns < turnsAfter ? setImmediate(turn) : resolve());
    setImmediate(turn);
  });
}
