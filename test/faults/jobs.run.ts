import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { FailPoint } from "../../services/media/fail-points.ts";
import { programFile } from "../support/bundles.ts";
import { checkSeen, gatherer, jobsOf, type LawStores, lawStores } from "../support/laws.ts";
import { ownStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import { openWorldStores } from "../support/world-stores.ts";
import { findBreaches, whatIsLeft } from "./jobs.check.ts";
import { type Orders, poorOf, type Round, richOf, type Said } from "./jobs.child.ts";
import { type Outside, writeCatalog } from "./jobs.outside.ts";
import type { Question } from "./jobs.standing.ts";
import { type SharedTime, startSharedTime } from "./shared-time.ts";

/** A run: processes on the same stores. One of them dies in each of its rounds. */
export interface RunOptions {
  /**
   * Another process lives beside the dying one, gets the same submissions, and continues alone. Otherwise the same process is started
   * again.
   */
  beside: boolean;
  /** Database, queue and blobs are on servers. Default false: they are in the folder and in memory. */
  onServers?: boolean;
  bug?: Orders["bug"];
  /** Real ms until a round must be at rest. By default far more than a quiet machine needs. */
  restWithinMs?: number;
  /** Its upstreams, with the real drivers. Absent where the process itself plays the upstream. */
  outside?: Outside;
}

/** A death: a round of a run. */
export interface Death {
  dieAt: FailPoint | undefined;
  /** Resolves when the process is to be killed from outside. It may die at its step before. */
  killWhen?: Promise<unknown>;
}

/** A run of one round. */
export type Plan = RunOptions & Death;

/** The result of a death. */
export interface Outcome {
  /** The process died by itself, at its step. */
  died: boolean;
  breaches: string[];
}

/** A run that has begun. */
export interface Run extends AsyncDisposable {
  /**
   * Lets a process die, and examines the state when all is at rest. A round has accounts of its own. Its processes and stores are those of
   * the round before.
   */
  carryOut(death: Death): Promise<Outcome>;
}

/** The step in ms of the shared time and in real ms. A lease takes at least 0.3 real seconds, and 30 steps of every process. */
const pace = { stepMs: 1_000, everyMs: 10 };
/** Slower, for upstreams at which jobs end by themselves that their callers cancel. */
const outsidePace = { stepMs: 500, everyMs: 25 };
/** Real ms until a round must be at rest. On a quiet machine all of it takes less. */
const quietWithinMs = 170_000;
/** Real ms between two looks at a round. Each look reads all of its jobs and holds from the stores of the processes. */
const lookEveryMs = 100;
/** Real ms for a process to describe its state. */
const toldWithinMs = 10_000;
/** Real ms for a process to reach the step at which it dies. With one place at its upstream it makes one job after the other. */
const deathWithinMs = 60_000;
/** Days for which jobs are kept where a process dies while it removes them. */
const shortRetentionDays = 0.0003;

/** Does one death in a run of its own. */
export async function carryOut({ dieAt, killWhen, ...options }: Plan): Promise<Outcome> {
  await using runs = createRuns(options);
  return await runs.carryOut({ dieAt, ...(killWhen ? { killWhen } : {}) });
}

/**
 * Does deaths one after the other in one run, which begins with the first one, because starting processes and opening stores takes long. A
 * new run follows one that breaks. Jobs that are removed early have a run of their own.
 */
export function createRuns(options: RunOptions): Run {
  let shared: Run | undefined;
  const close = async () => {
    const ended = shared;
    shared = undefined;
    await ended?.[Symbol.asyncDispose]();
  };
  return {
    async carryOut(death) {
      if (death.dieAt === "forgotten") {
        await using run = await openRun(options, { forgets: true });
        return await run.carryOut(death);
      }
      shared ??= await openRun(options, { forgets: false });
      try {
        return await shared.carryOut(death);
      } catch (error) {
        await close();
        throw error;
      }
    },
    [Symbol.asyncDispose]: close,
  };
}

async function openRun(options: RunOptions, { forgets }: { forgets: boolean }): Promise<Run> {
  const { beside, onServers, bug, outside, restWithinMs = quietWithinMs } = options;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-faults-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const env = onServers ? (await ownStores(stack, "faults"))?.env : {};
  if (!env) throw new Error("there is no server for one of the stores");
  const receiver = stack.use(await startWebhookReceiver());
  const time = stack.use(startSharedTime(outside ? outsidePace : pace));
  const { clock } = time;
  const orders: Orders = {
    ...{ folder, env, bug, webhookUrl: `${receiver.url}/hook` },
    retentionDays: forgets ? shortRetentionDays : 30,
    catalogFile: outside && (await writeCatalog(folder, outside)),
  };
  /** The living processes, the oldest first. */
  const living: Child[] = [];
  /** The ends of the others, for the message of a failure. */
  const ends: string[] = [];
  let said: Said[] = [];
  let opened: LawStores | undefined;
  const begin = async () => {
    const child = start(orders, time, (one) => said.push(one));
    living.push(child);
    void child.ended.then(() => {
      living.splice(living.indexOf(child), 1);
      ends.push(`${child.process.signalCode ?? child.process.exitCode}`);
    });
    await child.ready;
    return child;
  };
  /** The reasons why a round is not at rest, for the message of a failure. */
  const standing = async (left: readonly string[]) => {
    const jobIds = left.flatMap((one) => /^job_\w+/.exec(one) ?? []);
    const words = await Promise.all(living.map((child) => child.standing(jobIds)));
    return [`${living.length} processes live; their ends: ${ends.join(", ")}`, ...words].join("\n");
  };
  const owned = new AsyncDisposableStack();
  owned.use(stack.move());
  owned.defer(async () => void (await Promise.all(living.map(kill))));
  let number = 0;
  const everybody: string[] = [];
  const carryOut = async ({ dieAt, killWhen }: Death): Promise<Outcome> => {
    number++;
    said = [];
    const accounts = [richOf(number), poorOf(number)].map(({ accountId }) => accountId);
    everybody.push(...accounts);
    const round = { number, dieAt: undefined, stops: false };
    const other = beside ? (living[0] ?? (await begin())) : undefined;
    const mortal = (beside ? undefined : living[0]) ?? (await begin());
    other?.play({ ...round, name: "b" });
    mortal.play({ ...round, name: "a", dieAt, stops: dieAt === "handed-back" });
    void killWhen?.then(() => mortal.process.kill("SIGKILL"));
    let died = false;
    if (!other) {
      died = await diesWithin(mortal, deathWithinMs);
      await kill(mortal);
      (await begin()).play({ ...round, name: "a" });
    }
    // The first process has made the stores.
    opened ??= lawStores(owned.use(await openWorldStores({ folder, env, clock })));
    const stores = opened;
    const seen = await watch(stores, { living, time, accounts, forgets, restWithinMs, standing });
    // The other process may have done all work before this one reaches its step.
    if (other) died = await diesWithin(mortal, 0);
    await kill(mortal);
    const { received } = receiver;
    const found = await findBreaches({
      ...{ stores, accounts, everybody, folder, clock, said, forgets, received },
    });
    return { died, breaches: [...seen, ...found] };
  };
  return { carryOut, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Waits until a round is at rest. Answers each breach that was seen meanwhile. */
async function watch(
  stores: LawStores,
  round: {
    living: readonly Child[];
    time: SharedTime;
    accounts: readonly string[];
    forgets: boolean;
    restWithinMs: number;
    standing(left: readonly string[]): Promise<string>;
  },
): Promise<Set<string>> {
  const { living, time, accounts, forgets, restWithinMs, standing } = round;
  const { breaches, check } = gatherer();
  let left: readonly string[] = [];
  const beganAt = time.clock.now();
  let lookedAt = beganAt;
  const isAtRest = async () => {
    // No process is left to do the rest.
    if (living.length === 0) throw new Error("no process lives");
    for (const accountId of accounts) await checkSeen(stores, accountId, check);
    left = living.every((child) => child.isDone())
      ? await whatIsLeft(stores, accounts)
      : ["submissions without an answer"];
    if (forgets && left.length === 0) left = await remembered(stores, accounts);
    lookedAt = time.clock.now();
    return left.length === 0;
  };
  const within = { withinMs: restWithinMs, everyMs: lookEveryMs };
  await until("the round to come to rest", isAtRest, within).catch(async (error: Error) => {
    const now = time.clock.now();
    const passed = `${now - beganAt} ms of their time passed, the last look was at ${lookedAt}`;
    const jobs = await whatIsLeft(stores, accounts).catch(() => []);
    const all = [...new Set([...left, ...jobs])];
    throw new Error(`${error.message}: ${all.join(", ")}; ${passed}\n${await standing(all)}`);
  });
  return new Set(breaches);
}

/** Ended jobs that are not removed yet, as texts. */
async function remembered(stores: LawStores, accounts: readonly string[]): Promise<string[]> {
  const jobs = accounts.map((account) => jobsOf(stores, account, ["completed", "failed"]));
  return (await Promise.all(jobs)).flat().map(({ jobId }) => `${jobId} is remembered`);
}

interface Child {
  process: ChildProcess;
  /** Also resolves where the process ends before. */
  ready: Promise<void>;
  /** Lets the process submit. */
  play(round: Round): void;
  /** Every submission of its round has its answer. */
  isDone(): boolean;
  /** The state of the process in its own words. */
  standing(jobIds: readonly string[]): Promise<string>;
  ended: Promise<void>;
}

function start(orders: Orders, time: SharedTime, hear: (said: Said) => void): Child {
  const script = programFile("test/faults/jobs.child.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const isOfTime = time.enlist(child);
  let isDone = false;
  let told = Promise.withResolvers<string>();
  const ready = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      // A death may cut the last line.
      if (!line.endsWith("}")) continue;
      const one = JSON.parse(line) as Said;
      if (isOfTime(one)) continue;
      hear(one);
      if (one.kind === "ready") ready.resolve();
      if (one.kind === "done") isDone = true;
      if (one.kind === "standing") told.resolve(one.words);
    }
  })();
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const ended = Promise.all([exited, reading]).then(() => {});
  // A process that dies at its first step gets no further input.
  child.stdin.on("error", () => {});
  return {
    process: child,
    ready: Promise.race([ready.promise, ended]),
    play(round) {
      isDone = false;
      child.stdin.write(`${JSON.stringify(round)}\n`);
    },
    isDone: () => isDone,
    async standing(jobIds) {
      told = Promise.withResolvers();
      child.stdin.write(`${JSON.stringify({ jobIds } satisfies Question)}\n`);
      const silent = delay(toldWithinMs, `process ${child.pid} does not answer`, { ref: false });
      return await Promise.race([told.promise, silent]);
    },
    ended,
  };
}

/** True where the process dies by SIGKILL within `ms` real ms. Throws where it ends in another way. */
async function diesWithin(child: Child, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, ms, "late");
  });
  const end = await Promise.race([child.ended, late]);
  clearTimeout(timer);
  if (end === "late") return false;
  const { signalCode, exitCode } = child.process;
  if (signalCode !== "SIGKILL") throw new Error(`it ended by itself: ${exitCode ?? signalCode}`);
  return true;
}

async function kill(child: Child): Promise<void> {
  child.process.kill("SIGKILL");
  await child.ended;
}
