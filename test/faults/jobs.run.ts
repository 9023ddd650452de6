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
import { openWorldStores } from "../support/world-stores.ts";
import { type FastTime, fastClock } from "./fast-clock.ts";
import { findBreaches, isQuiet } from "./jobs.check.ts";
import { type Orders, poor, type Said } from "./jobs.child.ts";

/** A run: a process that dies, and what comes after it. */
export interface Plan {
  dieAt: FailPoint;
  /** Another process lives beside it, takes the same submissions, and goes on alone. Else the same is started again. */
  beside: boolean;
  /** Database, queue and blobs are on servers; default false: in the folder and in memory. */
  onServers?: boolean;
  bug?: Orders["bug"];
}

/** What came of it. */
export interface Outcome {
  /** The process died by itself, where it was told to. */
  died: boolean;
  breaches: string[];
}

/** A lease is two real seconds. */
const speed = 15;
/** Real time for a run to come to rest. */
const quietWithinMs = 40_000;
/** Real time for a process to come to the point where it dies. */
const deathWithinMs = 15_000;

/** Everybody who submits. */
const accounts = [alice.accountId, poor.accountId];

/** Runs a plan to its end and examines what it left. */
export async function carryOut({ dieAt, beside, onServers, bug }: Plan): Promise<Outcome> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-faults-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const env = onServers ? (await ownStores(stack, "faults"))?.env : {};
  if (!env) throw new Error("there is no server for one of the stores");
  const said: Said[] = [];
  const time: FastTime = { realMs: Date.now(), fastMs: Date.now(), speed };
  const forgets = dieAt === "forgotten";
  const common = { folder, time, env, retentionDays: forgets ? 0.0003 : 30, bug };
  const living: Child[] = [];
  stack.defer(() => killAll(living));
  const begin = (name: string, more: Partial<Orders> = {}) => {
    const orders: Orders = { ...common, name, dieAt: undefined, stops: false, bug, ...more };
    const child = start(orders, said);
    living.push(child);
    return child;
  };
  const other = beside ? begin("b") : undefined;
  await other?.ready;
  const mortal = begin("a", { dieAt, stops: dieAt === "handed-back" });
  await mortal.ready;
  for (const child of living) child.go();
  const died = await endsWithin(mortal, deathWithinMs);
  mortal.process.kill("SIGKILL");
  await mortal.ended;
  living.splice(living.indexOf(mortal), 1);
  if (!other) {
    const again = begin("a");
    await again.ready;
    again.go();
  }
  const opened = stack.use(await openWorldStores({ folder, env, clock: fastClock(time) }));
  const stores = lawStores(opened);
  const seen = await watch(stores, living);
  await killAll(living);
  const found = await findBreaches({ stores, accounts, folder, time, said, forgets });
  return { died, breaches: [...seen, ...found] };
}

/** Waits until the run has come to rest. Gives each breach that was seen meanwhile. */
async function watch(stores: LawStores, living: readonly Child[]): Promise<Set<string>> {
  const { breaches, check } = gatherer();
  await until(
    "the run to come to rest",
    async () => {
      for (const accountId of accounts) await checkSeen(stores, accountId, check);
      return living.every((child) => child.isDone()) && (await isQuiet(stores, accounts));
    },
    { withinMs: quietWithinMs, everyMs: 50 },
  );
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

function start(orders: Orders, said: Said[]): Child {
  const script = join(import.meta.dirname, "jobs.child.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let isDone = false;
  const ready = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      // A death may cut the last line.
      if (!line.endsWith("}")) continue;
      const one = JSON.parse(line) as Said;
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
    go: () => child.stdin.write("go\n"),
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
