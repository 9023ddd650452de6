import type { Interceptor } from "@connectrpc/connect";
import { ErrorReason, isRefusal, RefusalError } from "#kit/base/errors.ts";
import { randomIds } from "#kit/base/ids.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import {
  type ApplyRequest,
  type ApplyResponse,
  HoldKind,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobKind } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { FailPoint } from "../../services/media/fail-points.ts";
import type { JobStore } from "../../services/media/jobs/store.ts";
import {
  as,
  createJobsWorld,
  image,
  type JobsWorld,
  music,
  video,
} from "../contract/jobs.world.ts";
import { until } from "../support/until.ts";
import { openWorldStores, type StoreVariables } from "../support/world-stores.ts";
import { realUpstreams } from "./jobs.drivers.ts";
import { createLogMemory, type Question, standing } from "./jobs.standing.ts";
import { durableUpstream, endless, impossible } from "./jobs.upstream.ts";
import { followTime, type TimeSaid } from "./shared-time.ts";

/** The settings of a process at its start. */
export interface Orders {
  folder: string;
  /** Name the stores on servers. Without any, all stores are in the folder. */
  env: StoreVariables;
  retentionDays: number;
  /** The address for webhooks of its jobs. */
  webhookUrl: string;
  /** A bug that this process has on purpose. */
  bug: "double-charge" | "never-completed" | undefined;
  /** The catalog of its upstreams, with the real drivers. Undefined where the process itself plays the upstream. */
  catalogFile: string | undefined;
}

/** The work of one round, in a line on standard input: submissions for accounts of its own. */
export interface Round {
  number: number;
  /** Identifies a process within a round. */
  name: string;
  /** The step at which the process kills itself. */
  dieAt: FailPoint | undefined;
  /** The process has a running video that never ends, and then stops without a kill. */
  stops: boolean;
}

/** A line of its standard output. */
export type Said =
  | TimeSaid
  /** It works, and waits for its first round. */
  | { kind: "ready" }
  /** A submission was answered with 202. */
  | { kind: "accepted"; key: string; jobId: string }
  | { kind: "refused"; key: string; reason: number }
  /** Its caller canceled the job, and got that answer. */
  | { kind: "cancelled"; jobId: string }
  /** Its caller deleted the job, and got that answer, or that the job is gone. */
  | { kind: "deleted"; jobId: string }
  /** Another key could read a job. */
  | { kind: "leak"; jobId: string }
  /** Every submission of its round has its answer. */
  | { kind: "done" }
  /** The state of the process in words, where the test asked for it. */
  | { kind: "standing"; words: string };

/** The account with credits in a round. */
export const richOf = (round: number): Principal => principal(`rich${round}`);
/** The account without credits in a round. */
export const poorOf = (round: number): Principal => principal(`poor${round}`);
const principal = (name: string) => ({ accountId: `acct_${name}`, keyId: `key_${name}` });
/** The first credits of the account with credits. */
export const funds = 1_000n;
/** A real image of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function say(said: Said): void {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

/** Submissions that every process of a round makes, and those of this one. */
function submissionsOf({ name, number }: Round, webhookUrl: string) {
  const [rich, poor] = [richOf(number), poorOf(number)];
  const image_url = `data:image/png;base64,${pixel}`;
  const all = [
    { key: "image", kind: JobKind.IMAGE, body: image({ n: 2 }) },
    // Twice at the same time.
    { key: "image", kind: JobKind.IMAGE, body: image({ n: 2 }) },
    { key: "video", kind: JobKind.VIDEO, body: video({ input_reference: { image_url } }) },
    { key: "bad", kind: JobKind.MUSIC, body: music({ title: impossible }) },
    { key: `video-${name}`, kind: JobKind.VIDEO, body: video({ input_reference: { image_url } }) },
    { key: `music-${name}`, kind: JobKind.MUSIC, body: music() },
    // Every process cancels it while it runs. One that dies leaves that to the others, or to the next one.
    { key: "endless", kind: JobKind.MUSIC, body: music({ title: endless }) },
    // Deleted after its end.
    {
      key: "deleted",
      kind: JobKind.VIDEO,
      body: video({ input_reference: { image_url } }),
    },
    { key: `bad-${name}`, kind: JobKind.MUSIC, body: music({ title: impossible }) },
  ].map((one) => ({ ...one, body: { ...one.body, webhookUrl }, principal: rich, poor }));
  const none = ["poor", `poor-${name}`].map((key) => {
    return { key, kind: JobKind.IMAGE, body: image(), principal: poor, poor };
  });
  return [...all, ...none];
}

type Submission = ReturnType<typeof submissionsOf>[number];

/** Submits until there is an answer, like a client. */
async function submit(world: JobsWorld, submission: Submission): Promise<void> {
  const { key, kind, body, principal, poor } = submission;
  for (;;) {
    try {
      const { job } = await world.submit(body, { key, kind, principal });
      say({ kind: "accepted", key, jobId: job.jobId });
      await readAsOther(world, job.jobId, poor);
      if (key.startsWith("endless")) await cancel(world, job.jobId, principal);
      if (key.startsWith("deleted")) await remove(world, job.jobId, principal);
      return;
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      say({ kind: "refused", key, reason: error.reason });
      if (key.startsWith("poor")) return;
      // A process that died had deleted its job.
      if (isRefusal(error, ErrorReason.JOB_NOT_FOUND)) return;
      await world.clock.sleep(1_000);
    }
  }
}

async function cancel(world: JobsWorld, jobId: string, rich: Principal): Promise<void> {
  const isRunning = async () => (await world.store.find(jobId))?.state !== "queued";
  await until("the job to run", isRunning, { withinMs: 120_000 });
  await repeat(world, () => world.cancel(jobId, rich));
  say({ kind: "cancelled", jobId });
}

async function remove(world: JobsWorld, jobId: string, rich: Principal): Promise<void> {
  await repeat(world, () => world.peers.media.deleteJob({ jobId }, as(rich)));
  say({ kind: "deleted", jobId });
}

/** Repeats like a client, until the work succeeds or there is no such job. */
async function repeat(world: JobsWorld, work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      if (isRefusal(error, ErrorReason.JOB_NOT_FOUND)) return;
      await world.clock.sleep(1_000);
    }
  }
}

async function readAsOther(world: JobsWorld, jobId: string, poor: Principal): Promise<void> {
  const read = await world.get(jobId, poor).catch(() => undefined);
  if (read) say({ kind: "leak", jobId });
}

/** Deletes the imported files, in use or not. Another process may do the same. */
async function deleteImports({ peers }: JobsWorld, rich: Principal): Promise<void> {
  const { files } = await peers.media.listFiles({ pageSize: 100 }, as(rich));
  for (const { fileId } of files) {
    await peers.media.deleteFile({ fileId }, as(rich)).catch((error: unknown) => {
      if (!isRefusal(error, ErrorReason.FILE_NOT_FOUND)) throw error;
    });
  }
}

/** A billing that charges again where a settlement is repeated. */
function doubleCharge(): Interceptor {
  return (next) => async (req) => {
    const res = await next(req);
    if (req.stream || res.stream || req.method.name !== "Apply") return res;
    const { operations } = req.message as ApplyRequest;
    const { outcomes } = res.message as ApplyResponse;
    for (const [i, { operation }] of operations.entries()) {
      const outcome = outcomes[i]?.outcome;
      if (operation.case !== "settle" || outcome?.case !== "settle") continue;
      if (!outcome.value.replayed) continue;
      const { accountId, unit, amount, holdId: ref } = operation.value;
      const holdId = randomIds.make("again");
      const reserve = {
        accountId,
        unit,
        amount,
        holdId,
        ref,
        kind: HoldKind.JOB,
        keyId: "key_again",
      };
      const checkTime = { seconds: 0n, nanos: 0 };
      const twice = [
        { operation: { case: "reserve", value: { ...reserve, checkTime } } },
        { operation: { case: "settle", value: { accountId, unit, holdId, amount } } },
      ];
      await next({ ...req, message: { ...req.message, operations: twice } } as never);
    }
    return res;
  };
}

/** A store that refuses the end of every job. */
function neverCompleted(store: JobStore): JobStore {
  return {
    ...store,
    async apply(jobId, command) {
      if (command.kind === "complete") throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
      return store.apply(jobId, command);
    },
  };
}

/** Submits the jobs of a round, and prints when each submission has its answer. */
async function play(world: JobsWorld, round: Round, orders: Orders): Promise<void> {
  const rich = richOf(round.number);
  const { accountId } = rich;
  const opening = { accountId, unit: Unit.CREDITS, amount: funds };
  await world.admin.billing.grant({ ...opening, operationId: `opening-${round.number}` });
  const submitted = Promise.all(
    submissionsOf(round, orders.webhookUrl)
      // With a short retention a dying process could submit it again after the first one was removed. It would never end.
      .filter(({ key }) => key !== "endless" || orders.retentionDays >= 1)
      .map((one) => submit(world, one)),
  );
  if (round.stops) {
    const running = { states: ["running"], kind: undefined, after: undefined, limit: 99 } as const;
    const isBegun = async () => {
      const jobs = await world.store.list({ ...running, of: { accountId } });
      return jobs.some(({ resumeId }) => resumeId !== undefined);
    };
    await until("a running video", isBegun, { withinMs: 60_000 });
    await Promise.all(world.workers.map((worker) => worker.drain(AbortSignal.abort())));
  }
  await submitted;
  // One of two processes deletes them, so that some runs end with files and some without.
  if (round.name === "a") await deleteImports(world, rich);
  say({ kind: "done" });
}

/** Does the work of each line of input, until the process is killed. */
async function run(orders: Orders): Promise<void> {
  // Timers of sleeps do not keep a process alive.
  setInterval(() => {}, 60_000);
  const { folder, env, retentionDays, catalogFile } = orders;
  let round: Round | undefined;
  let begin: (next: Round | Question) => void = () => {};
  const { clock, liveBy, waitsMs } = await followTime((word) => begin(word as Round | Question));
  const memory = createLogMemory();
  await using world = await createJobsWorld({
    folder,
    clock,
    openStores: (folder, clock) => openWorldStores({ folder, clock, env }),
    ...(catalogFile
      ? { upstream: realUpstreams(clock), catalogFile }
      : { upstream: durableUpstream(folder, { isStuck: () => round?.stops === true }) }),
    workerCount: catalogFile ? 1 : 2,
    retentionDays,
    log: memory.log,
    failPoints(point) {
      if (point === round?.dieAt) process.kill(process.pid, "SIGKILL");
    },
    ...(orders.bug === "double-charge" ? { between: doubleCharge() } : {}),
    ...(orders.bug === "never-completed" ? { beforeStore: neverCompleted } : {}),
  });
  liveBy(() => world.store.find("none"));
  begin = async (next) => {
    if ("jobIds" in next) {
      return say({
        kind: "standing",
        words: await standing(world, next, { waitsMs, lines: memory.lines }),
      });
    }
    round = next;
    void play(world, next, orders);
  };
  say({ kind: "ready" });
  await new Promise(() => {});
}

const [, script, orders] = process.argv;
if (script === import.meta.filename && orders) await run(JSON.parse(orders) as Orders);
