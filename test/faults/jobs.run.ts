import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { FailPoint } from "../../services/media/fail-points.ts";
import { alice } from "../contract/jobs.world.ts";
import { checkSeen, gatherer, type LawStores, lawStores } from "../support/laws.ts";
import { ownStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import { openWorldStores } from "../support/world-stores.ts";
import { findBreaches, isOnlyTimeLeft, whatIsLeft } from "./jobs.check.ts";
import { type Orders, poor, type Said } from "./jobs.child.ts";
import { type Outside, writeCatalog } from "./jobs.outside.ts";
import { type SharedTime, startSharedTime } from "./shared-time.ts";

/** A run: a process that dies, and what comes after it. */
export interface Plan {
  dieAt: FailPoint | undefined;
  /** Another process lives beside it, takes the same submissions, and goes on alone. Else the same is started again. */
  beside: boolean;
  /** Database, queue and blobs are on servers; default false: in the folder and in memory. */
  onServers?: boolean;
  bug?: Orders["bug"];
  /** Its upstreams, by the real drivers; absent: an upstream of the process itself. */
  outside?: Outside;
  /** Resolves when the process is to be killed from outside; it may die at its step before. */
  killWhen?: Promise<unknown>;
}

/** What came of it. */
export interface Outcome {
  /** The process died by itself, where it was told to. */
  died: boolean;
  breaches: string[];
}

/** Of the shared time, in ms and real ms: a lease is 0.6 real seconds at least. */
const pace = { stepMs: 500, everyMs: 10 };
/** Where jobs end by themselves, that their callers cancel: slower. */
const outsidePace = { stepMs: 500, everyMs: 25 };
/** How long a step is where only time is left, in ms. */
const leapMs = 60_000;
/** Real ms for a run to come to rest: nothing of it is as long where the machine is quiet. */
const quietWithinMs = 170_000;
/** Real time for a process to come to the point where it dies: one job after the other where its upstream has one place. */
const deathWithinMs = 60_000;
/** The same beside another process, which may have done it all before: then it never comes to that point. */
const deathBesideWithinMs = 15_000;

/** Everybody who submits. */
const accounts = [alice.accountId, poor.accountId];

/** Runs a plan to its end and examines what it left. */
export async function carryOut(plan: Plan): Promise<Outcome> {
  const { dieAt, beside, onServers, bug, outside, killWhen } = plan;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-faults-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const env = onServers ? (await ownStores(stack, "faults"))?.env : {};
  if (!env) throw new Error("there is no server for one of the stores");
  const receiver = stack.use(await startWebhookReceiver());
  const said: Said[] = [];
  const time = stack.use(startSharedTime(outside ? outsidePace : pace));
  const forgets = dieAt === "forgotten";
  const retentionDays = forgets ? 0.0003 : 30;
  const webhookUrl = `${receiver.url}/hook`;
  const catalogFile = outside && (await writeCatalog(folder, outside));
  const common = { folder, env, retentionDays, bug, catalogFile, webhookUrl };
  const living: Child[] = [];
  stack.defer(() => killAll(living));
  const begin = (name: string, more: Partial<Orders> = {}) => {
    const orders: Orders = { ...common, name, dieAt: undefined, stops: false, bug, ...more };
    const child = start(orders, time, said);
    living.push(child);
    return child;
  };
  const other = beside ? begin("b") : undefined;
  await other?.ready;
  const mortal = begin("a", { dieAt, stops: dieAt === "handed-back" });
  await mortal.ready;
  for (const child of living) child.go();
  void killWhen?.then(() => mortal.process.kill("SIGKILL"));
  const died = await endsWithin(mortal, beside ? deathBesideWithinMs : deathWithinMs);
  mortal.process.kill("SIGKILL");
  await mortal.ended;
  living.splice(living.indexOf(mortal), 1);
  if (!other) {
    const again = begin("a");
    await again.ready;
    again.go();
  }
  const { clock } = time;
  const opened = stack.use(await openWorldStores({ folder, env, clock }));
  const stores = lawStores(opened);
  const seen = await watch(stores, living, time);
  await killAll(living);
  const { received } = receiver;
  const found = await findBreaches({ stores, accounts, folder, clock, said, forgets, received });
  return { died, breaches: [...seen, ...found] };
}

/** Waits until the run has come to rest. Gives each breach that was seen meanwhile. */
async function watch(
  stores: LawStores,
  living: readonly Child[],
  time: SharedTime,
): Promise<Set<string>> {
  const { breaches, check } = gatherer();
  let left: readonly string[] = [];
  const isAtRest = async () => {
    for (const accountId of accounts) await checkSeen(stores, accountId, check);
    left = living.every((child) => child.isDone())
      ? await whatIsLeft(stores, accounts)
      : ["submissions without an answer"];
    const now = time.clock.now();
    if (await isOnlyTimeLeft(stores, { accounts, left, now })) time.leap(leapMs);
    return left.length === 0;
  };
  const within = { withinMs: quietWithinMs, everyMs: 50 };
  await until("the run to come to rest", isAtRest, within).catch((error: Error) => {
    throw new Error(`${error.message}: ${left.join(", ")}`);
  });
  return new Set(breaches);
}

interface Child {
  process: ChildProcess;
  /** Resolves too where it ends before. */
  ready: Promise<void>;
  /** Lets it submit. */
  go(): void;
  /** Every submission has its answer. */
  isDone(): boolean;
  ended: Promise<void>;
}

function start(orders: Orders, time: SharedTime, said: Said[]): Child {
  const script = join(import.meta.dirname, "jobs.child.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const isOfTime = time.enlist(child);
  let isDone = false;
  const ready = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      // A death may cut the last line.
      if (!line.endsWith("}")) continue;
      const one = JSON.parse(line) as Said;
      if (isOfTime(one)) continue;
      said.push(one);
      if (one.kind === "ready") ready.resolve();
      if (one.kind === "done") isDone = true;
    }
  })();
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const ended = Promise.all([exited, reading]).then(() => {});
  // One that dies at its first step is not told about.
  child.stdin.on("error", () => {});
  return {
    process: child,
    ready: Promise.race([ready.promise, ended]),
    go: () => child.stdin.write("{}\n"),
    isDone: () => isDone,
    ended,
  };
}

/** True where it died by SIGKILL; throws where it ended in another way. */
async function endsWithin(child: Child, ms: number): Promise<boolean> {
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

async function killAll(children: Child[]): Promise<void> {
  for (const child of children.splice(0)) {
    child.process.kill("SIGKILL");
    await child.ended;
  }
}
