// Adds the commands `genmesh job …`, by which an operator lists an account's jobs, looks at one with its money, and has a failed
// one repeated.

import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { isoTime } from "#common/documents/answer-values.ts";
import { printedEntry } from "#common/documents/entry-document.ts";
import { jobWords, printedJob } from "#common/documents/job-document.ts";
import {
  type InspectJobResponse,
  type Job,
  JobStatus,
  type JobWait,
  JobWait_Refusal,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { operationId, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printFacts, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** Jobs in one listing. It is for people to read, and is no export. */
const listLimit = 100;

export function jobCommands(program: Command, cli: Cli): void {
  const job = withExamples(
    program.command("job").description("image, video and music jobs"),
    "job list acct_…",
    "job show job_…",
    "job retry job_… --operation-id again-1",
  );
  withExamples(
    job.command("list <account>").description(`an account's newest ${listLimit} jobs`),
    "job list acct_…",
  ).action((accountId: string) => list(cli, accountId));
  withExamples(
    job.command("show <job>").description("one job with its history, times and money"),
    "job show job_…",
  ).action((jobId: string) => show(cli, jobId));
  withExamples(
    job
      .command("retry <job>")
      .description("a failed job's request as a new job, validated and held anew")
      .option("--operation-id <id>", "the same id makes one job", operationId),
    "job retry job_… --operation-id again-1",
  ).action(async (jobId: string, options: { operationId?: string }) => {
    const id = options.operationId ?? randomUUID();
    const { job: made } = await auditedByCli(
      cli,
      { action: "job.retry", target: jobId, details: { operationId: id } },
      () => cli.peers().media.retryJob({ jobId, operationId: id }),
      (answer) => ({ accountId: answer.job?.accountId }),
    );
    if (cli.json) printJson(cli, { job: made && printedJob(made) });
    else cli.out(`${made?.jobId} repeats ${jobId}; ${made?.creditsReserved} credits are held.\n`);
  });
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const { auth, media } = cli.peers();
  // Media knows jobs, not accounts. For an account that does not exist it answers an empty list.
  await auth.getAccount({ accountId });
  const { jobs } = await media.listAccountJobs({ accountId, pageSize: listLimit });
  if (cli.json) return printJson(cli, { jobs: jobs.map(printedJob) });
  printTable(
    cli,
    ["job", "kind", "model", "status", "held", "charged", "made"],
    jobs.map((job) => [
      job.jobId,
      jobWords(job).kind,
      job.model,
      jobWords(job).status,
      String(job.creditsReserved),
      job.creditsCharged === undefined ? "" : String(job.creditsCharged),
      isoTime(job.createTime),
    ]),
    "no jobs",
  );
}

async function show(cli: Cli, jobId: string): Promise<void> {
  const peers = cli.peers();
  const found = await peers.media.inspectJob({ jobId });
  const { accountId, holdId } = found;
  const { entries } = await peers.billing.listEntries({ accountId, holdId });
  // Billing answers the newest entry first. A history has the oldest first.
  const money = entries.toReversed().map(printedEntry);
  const events = found.events.map((event) => ({
    time: isoTime(event.time),
    state: event.state,
    detail: event.detail,
  }));
  if (cli.json) {
    const { keyId, attempts, job, wait, upstream } = found;
    return printJson(cli, {
      job: job && printedJob(job),
      accountId,
      keyId,
      holdId,
      attempts,
      upstream: upstream || undefined,
      ...(wait ? { wait: plainWait(wait) } : {}),
      events,
      money,
    });
  }
  printFacts(cli, factsOf(found));
  cli.out("\n");
  printTable(
    cli,
    ["time", "state", ""],
    events.map((one) => [one.time, one.state, one.detail]),
    "",
  );
  cli.out("\n");
  printTable(
    cli,
    ["time", "hold", "held", "charged"],
    money.map((one) => [one.time, one.operation, String(one.held), String(one.spent)]),
    "no entries in the ledger",
  );
}

function factsOf({
  job,
  accountId,
  keyId,
  holdId,
  attempts,
  wait,
  upstream,
}: InspectJobResponse): [string, string][] {
  if (!job) return [];
  const facts: [string, string | undefined][] = [
    ["job", job.jobId],
    ["kind", jobWords(job).kind],
    ["model", job.model],
    ["status", `${jobWords(job).status} (${job.progress} %)`],
    ["account", accountId],
    ["key", keyId],
    ["hold", holdId],
    ["attempts", String(attempts)],
    ["upstream", upstream || undefined],
    ["waits", wait && waitWords(wait, job)],
    ["credits held", String(job.creditsReserved)],
    ["credits charged", job.creditsCharged === undefined ? undefined : String(job.creditsCharged)],
    ["repeats", job.retryOf || undefined],
    ["error", job.error?.message],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== undefined);
}

const refusalNames = new Map<number, string>([
  [JobWait_Refusal.TOO_MANY_REQUESTS, "the upstream answered 429"],
  [JobWait_Refusal.UNAVAILABLE, "the upstream was not available (5xx)"],
  [JobWait_Refusal.UNREACHABLE, "the upstream could not be reached"],
  [JobWait_Refusal.ACCOUNT_EMPTY, "our account at the upstream is empty"],
  [JobWait_Refusal.DENIED, "the upstream denied what is configured"],
]);

function plainWait({ refusal, times, nextTryTime }: JobWait) {
  const reason = refusalNames.get(refusal) ?? "the upstream did not take the job";
  return { reason, times, nextTryAt: isoTime(nextTryTime) || undefined };
}

/** A job that runs, or has ended, is not tried again. */
function waitWords(wait: JobWait, job: Job): string {
  const { reason, times, nextTryAt } = plainWait(wait);
  const why = `${reason} (${times} in all)`;
  if (job.status !== JobStatus.QUEUED) return why;
  return `${why}; next try ${nextTryAt ?? "as soon as a worker has room"}`;
}
