import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "#kit/time/clock.ts";
import type { FailPoint } from "../../services/media/fail-points.ts";
import { alice, createJobsWorld } from "../contract/jobs.world.ts";
import { programFile } from "../support/bundles.ts";
import { type Chance, chanceOf } from "../support/chance.ts";
import { type LawStores, lawStores } from "../support/laws.ts";
import { ownStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { openWorldStores } from "../support/world-stores.ts";
import { whatIsLeft } from "./jobs.check.ts";
import { judgeSoak, type SoakVerdict } from "./kills.check.ts";
import type { SoakOrders, SoakSaid, Submission } from "./kills.child.ts";
import type { SoakUpstreams } from "./kills.upstreams.ts";
import { type SharedTime, startSharedTime } from "./shared-time.ts";

/** A soak: processes are killed again and again while they work on jobs at doubles of upstreams. */
export interface SoakPlan {
  /** Chooses the submissions, and for each kill its process, time and step. The machine's own timing adds further chance. */
  seed: number;
  kills: number;
  upstreams: SoakUpstreams;
  /** Database, queue and blobs are on servers. Otherwise they are in a folder and in memory. */
  onServers: boolean;
}

/** Processes. Each has the API, a worker of every kind and the sweeps. */
const processes = 3;
/** Processes that must be ready before the next kill, so that a kill hits work. */
const leastReady = 2;
/** Jobs submitted before each kill. */
const jobsAKill = 12;
/** The step in ms of the shared time and in real ms. A lease takes at least four real seconds. */
const pace = { stepMs: 160, everyMs: 20 };
/** A worker's steps from its claim to a job's charge. Most kills aim at them. */
const aims = [
  ...(["claimed", "sending", "upstream-accepted", "resumable"] as const),
  ...(["stored", "won", "settled"] as const),
] satisfies FailPoint[];
/** Of 100 kills, the number that aim at a step. The others come after a random time. */
const aimedPercent = 60;
/** Real ms: the longest time from a step to its kill, and the longest wait for a step. */
const [afterAimMs, aimWithinMs] = [12, 4_000];
/** Real ms before a kill that does not aim: the least, and the range of the random rest. */
const [leastWaitMs, moreWaitMs] = [100, 900];
/** Real ms after which a submission without an answer is repeated, at any process that is ready. */
const answerWithinMs = 6_000;
/** Real ms until everything must be at rest, on a busy machine. */
const quietWithinMs = 600_000;
/** Credits of the one account. */
const funds = 10_000_000n;

/** Does a soak, and checks its results. */
export async function soak({ seed, kills, upstreams, onServers }: SoakPlan) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-kills-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const env = onServers ? (await ownStores(stack, "kills"))?.env : {};
  if (!env) throw new Error("there is no server for one of the stores");
  const time = stack.use(startSharedTime(pace));
  const { clock } = time;
  const over = new AbortController();
  stack.defer(() => over.abort());
  upstreams.follow(clock, over.signal);
  const catalogFile = await upstreams.writeCatalog(folder);
  await grant(folder, env, clock);
  const chance = chanceOf(seed);
  const herd = createHerd({ folder, env, catalogFile }, time, chance);
  stack.defer(() => herd.killAll());
  for (let i = 0; i < processes; i++) herd.begin();
  for (let kill = 0; kill < kills; kill++) {
    await until("processes to be ready", () => herd.ready() >= leastReady, { withinMs: 120_000 });
    for (let i = 0; i < jobsAKill; i++) {
      herd.submit(upstreams.submissionOf(`job-${kill * jobsAKill + i}`, chance));
    }
    await herd.killOne();
    herd.begin();
  }
  const lastKillAt = clock.now();
  const stores = lawStores(stack.use(await openWorldStores({ folder, env, clock })));
  await atRest(stores, herd);
  const answers = herd.answers();
  await herd.killAll();
  const killed = herd.killed();
  const verdict = await judgeSoak({ stores, clock, answers, lastKillAt, upstreams });
  return {
    seed,
    kills: killed.length,
    aimed: countOf(killed),
    submissions: answers.size,
    ...verdict,
  };
}

/** The report of a soak. */
export type SoakReport = Awaited<ReturnType<typeof soak>> & SoakVerdict;

function countOf(names: readonly string[]): Record<string, number> {
  const counts = Map.groupBy(names, (name) => name);
  return Object.fromEntries([...counts].map(([name, list]) => [name, list.length]));
}

/** Grants the account its credits, in a process that ends afterwards. */
async function grant(folder: string, env: SoakOrders["env"], clock: Clock): Promise<void> {
  const openStores = (_: string, clock: Clock) => openWorldStores({ folder, clock, env });
  await using world = await createJobsWorld({ folder, clock, openStores, workerCount: 0 });
  await world.fund(funds);
}

/** The answers to a submission. */
export interface Answered {
  submission: Submission;
  /** The ids in all answers with 202. */
  jobIds: Set<string>;
}

interface Member {
  isReady: boolean;
  isKilled: boolean;
  send(submission: Submission): void;
  kill(): Promise<void>;
}

/** The processes of a soak, and their callers, which repeat unanswered submissions. */
function createHerd(orders: SoakOrders, time: SharedTime, chance: Chance) {
  const members = new Set<Member>();
  const answers = new Map<string, Answered>();
  const asked = new Map<string, { atMs: number; by: Member }>();
  const killed: string[] = [];
  let aim: { point: FailPoint; hit: (member: Member) => void } | undefined;
  let fault: Error | undefined;

  const hear = (member: Member, said: SoakSaid) => {
    if (said.kind === "ready") member.isReady = true;
    else if (said.kind === "accepted") answers.get(said.key)?.jobIds.add(said.jobId);
    else if (said.kind === "refused") asked.delete(said.key);
    else if (said.kind === "at" && said.point === aim?.point) aim.hit(member);
  };
  const begin = () => {
    const script = programFile("test/faults/kills.child.ts");
    const child = spawn(process.execPath, [script, JSON.stringify(orders)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    // A process that was just killed reads no further input.
    child.stdin.on("error", () => {});
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const member: Member = {
      isReady: false,
      isKilled: false,
      send: (submission) => void child.stdin.write(`${JSON.stringify(submission)}\n`),
      async kill() {
        member.isKilled = true;
        child.kill("SIGKILL");
        await exited;
        members.delete(member);
      },
    };
    members.add(member);
    void exited.then(() => {
      if (!member.isKilled) fault = new Error(`a process ended by itself: ${child.exitCode}`);
    });
    const isOfTime = time.enlist(child);
    createInterface({ input: child.stdout }).on("line", (line) => {
      // A death may cut the last line.
      if (!line.endsWith("}")) return;
      const said = JSON.parse(line) as SoakSaid;
      if (!isOfTime(said)) hear(member, said);
    });
  };
  const ready = () => {
    if (fault) throw fault;
    return [...members].filter(({ isReady, isKilled }) => isReady && !isKilled);
  };
  const ask = (key: string) => {
    const living = ready();
    const { submission } = answers.get(key) ?? {};
    if (living.length === 0 || !submission) return;
    const by = chance.pick(living);
    asked.set(key, { atMs: performance.now(), by });
    by.send(submission);
  };
  /** Like callers whose process died or does not answer. */
  const repeat = () => {
    for (const [key, { jobIds }] of answers) {
      if (jobIds.size > 0) continue;
      const last = asked.get(key);
      const isLate = !last || last.by.isKilled || performance.now() - last.atMs > answerWithinMs;
      if (isLate) ask(key);
    }
  };
  const wounded = async (): Promise<[how: string, Member]> => {
    const some = (how: string): [string, Member] => [how, chance.pick(ready())];
    if (!chance.likely(aimedPercent)) {
      await delay(leastWaitMs + chance.int(moreWaitMs));
      return some("any time");
    }
    const point = chance.pick(aims);
    const afterMs = chance.int(afterAimMs);
    const found = new Promise<Member>((hit) => {
      aim = { point, hit };
    });
    const hit = await Promise.race([found, delay(aimWithinMs)]);
    aim = undefined;
    if (!hit || hit.isKilled) return some("any time");
    await delay(afterMs);
    return [point, hit];
  };
  return {
    begin,
    ready: () => {
      repeat();
      return ready().length;
    },
    submit(submission: Submission) {
      answers.set(submission.key, { submission, jobIds: new Set() });
      ask(submission.key);
    },
    async killOne() {
      const [how, member] = await wounded();
      await member.kill();
      killed.push(how);
    },
    killAll: async () => void (await Promise.all([...members].map((one) => one.kill()))),
    /** Has every submission a 202? */
    isAnswered() {
      repeat();
      return [...answers.values()].every(({ jobIds }) => jobIds.size > 0);
    },
    answers: () => answers,
    killed: () => killed,
  };
}

async function atRest(stores: LawStores, herd: { isAnswered(): boolean }): Promise<void> {
  let left: readonly string[] = [];
  const accounts = [alice.accountId];
  const isAtRest = async () => {
    left = herd.isAnswered() ? await whatIsLeft(stores, accounts) : ["unanswered ones"];
    return left.length === 0;
  };
  const within = { withinMs: quietWithinMs, everyMs: 250 };
  await until("the soak to come to rest", isAtRest, within).catch((error: Error) => {
    throw new Error(`${error.message}: ${left.slice(0, 20).join(", ")}`);
  });
}
