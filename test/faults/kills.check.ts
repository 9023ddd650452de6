import type { Clock } from "#kit/time/clock.ts";
import { LostAnswer } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Job, upstreamOf } from "../../services/media/jobs/job.ts";
import { maxAttempts } from "../../services/media/limits.ts";
import { capabilitiesOf } from "../../services/upstreams/protocols.ts";
import { alice } from "../contract/jobs.world.ts";
import { checkAccount, gatherer, type LawStores } from "../support/laws.ts";
import { checkOrphans } from "./jobs.check.ts";
import { impossible } from "./jobs.upstream.ts";
import type { Answered } from "./kills.run.ts";
import type { SoakUpstreams } from "./kills.upstreams.ts";

/** The results of a soak. Each list has texts, and is empty where there is no fault. */
export interface SoakVerdict {
  /** The number of jobs by their end. */
  jobs: Record<string, number>;
  /** Accepted jobs that are missing or ended wrongly, missing files, and broken laws. */
  lost: string[];
  chargedTwice: string[];
  /** Jobs that upstreams got more than once against the catalog's rule, or that no caller submitted. */
  createdTwice: string[];
  /** Images that were requested again, which the catalog allows where a worker died with their answer: three times in all at most. */
  askedAgain: string[];
  /**
   * Jobs whose worker died after sending their last request and before storing the id in its answer. Their upstream can be asked neither
   * for the id nor for a repeat. They failed without a charge, but their upstream may charge for them.
   */
  unknowable: string[];
  /** Tasks that a service charges for other jobs than the completed and the unknowable ones, or more than once. */
  paidWrongly: string[];
  /** Seconds of the shared time from the last kill to the last job's end. */
  restedAfterSeconds: number;
  /** Jobs that failed because three workers died with them before sending anything. */
  worn: string[];
}

/** The state after a soak. */
export interface SoakRemains {
  stores: LawStores;
  clock: Clock;
  /** By idempotency key. */
  answers: ReadonlyMap<string, Answered>;
  /** Ms since the epoch by the shared time. */
  lastKillAt: number;
  upstreams: SoakUpstreams;
}

/** Checks the laws in the stores, and compares jobs and upstreams' generations with the answers to callers. */
export async function judgeSoak(remains: SoakRemains): Promise<SoakVerdict> {
  const { stores, clock, answers, lastKillAt, upstreams } = remains;
  const verdict: SoakVerdict = {
    ...{ jobs: {}, lost: [], chargedTwice: [], createdTwice: [], askedAgain: [] },
    ...{ unknowable: [], worn: [], paidWrongly: [], restedAfterSeconds: 0 },
  };
  const { breaches, check } = gatherer();
  const jobs = await checkAccount(stores, alice, check);
  await checkOrphans({ stores, clock }, check);
  for (const breach of breaches) {
    // Ends of a hold, charges, and commits of a job.
    (/^C[458]:/.test(breach) ? verdict.chargedTwice : verdict.lost).push(breach);
  }
  const restedAt = Math.max(...jobs.map(({ completedAt = 0 }) => completedAt));
  verdict.restedAfterSeconds = Math.round((restedAt - lastKillAt) / 1_000);
  const byId = new Map(jobs.map((job) => [job.jobId, job]));
  const only = [...answers].map(
    ([
      key,
      {
        jobIds: [jobId = ""],
      },
    ]) => [key, jobId] as const,
  );
  const begun = upstreams.begun(new Map(only));
  /** The keys of the jobs that the services may charge for. */
  const owed: string[] = [];
  for (const [key, { submission, jobIds }] of answers) {
    const [jobId = ""] = jobIds;
    if (jobIds.size !== 1) verdict.createdTwice.push(`${key} has ${jobIds.size} jobs`);
    const job = byId.get(jobId);
    if (!job) {
      verdict.lost.push(`${key}: ${jobId} is not there`);
      continue;
    }
    const made = begun.get(key) ?? [];
    const isImpossible = JSON.stringify(submission.body).includes(impossible);
    const end = endOf(job, isImpossible, made.length);
    verdict.jobs[end] = (verdict.jobs[end] ?? 0) + 1;
    const told = `${jobId} (${upstreamOf(job).name} ${job.spec.kind}): created ${made.length} times`;
    if (end === "lost") verdict.lost.push(`${told}, ${lifeOf(job)}`);
    if (end === "unknowable") verdict.unknowable.push(told);
    if (end === "worn") verdict.worn.push(told);
    const isOwed =
      end === "completed" || (end === "unknowable" && made.length > 0 && !isImpossible);
    if (isOwed) owed.push(key);
    if (made.length < 2) continue;
    const isAllowed = made.length <= maxAttempts && mayAskAgain(job);
    verdict[isAllowed ? "askedAgain" : "createdTwice"].push(`${told}: ${made.join(", ")}`);
  }
  for (const made of begun.get("") ?? []) verdict.createdTwice.push(`for no job: ${made}`);
  const paid = upstreams.paid?.() ?? owed;
  const isOnceIn = (list: readonly string[], key: string) =>
    list.filter((one) => one === key).length === 1;
  for (const key of new Set([...paid, ...owed])) {
    if (!isOnceIn(paid, key) || !isOnceIn(owed, key)) verdict.paidWrongly.push(key);
  }
  return verdict;
}

/** A job's steps, each with its seconds since the first one. */
function lifeOf({ events, createdAt }: Job): string {
  const seconds = (at: number) => Math.round((at - createdAt) / 1_000);
  return events.map(({ at, name, detail }) => `${seconds(at)} ${name} ${detail}`).join("; ");
}

/**
 * Where the catalog has no rule for lost answers of images, they are requested again. ComfyUI shows which jobs it has begun. No catalog of
 * a soak lets videos and music be requested again.
 */
function mayAskAgain(job: Job): boolean {
  const { lostAnswer } = upstreamOf(job);
  return job.spec.kind === "image" && isOnce(job) && lostAnswer !== LostAnswer.FAIL;
}

function isOnce(job: Job): boolean {
  return capabilitiesOf(upstreamOf(job).protocol)?.serves[job.spec.kind]?.submit === "once";
}

/** The end of a job: the correct one, or one of the two that a death excuses. */
function endOf(job: Job, isImpossible: boolean, created: number) {
  const { state, sent, resumeId, attempts } = job;
  if (state === "completed") return isImpossible || created === 0 ? "lost" : "completed";
  if (state !== "failed") return "lost";
  if (resumeId !== undefined) return isImpossible ? "impossible" : "lost";
  const most = mayAskAgain(job) ? maxAttempts : 1;
  if (sent && isOnce(job) && attempts >= most && created <= most) return "unknowable";
  return !sent && attempts === maxAttempts && created === 0 ? "worn" : "lost";
}
