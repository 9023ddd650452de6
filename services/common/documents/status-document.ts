// Shows the state of an installation: its processes, queues, holds and upstreams, and lists its faults. The command `genmesh status`
// prints it. The room notices sends messages about faults, and takes from here the age at which a queued job is one.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Hold } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Backlog, GetProcessResponse } from "#proto/genmesh/common/v1/process_service_pb.ts";
import type { ListUpstreamHealthResponse } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { isoTimeOrNull } from "./answer-values.ts";
import { upstreamDocuments } from "./upstream-document.ts";

/** A process at an address: its answer, or the reason why there is none. */
export type AskedProcess = { address: string; service: string } & (
  | { answer: GetProcessResponse }
  | { fault: string; isEarlier: boolean }
);

/** The answers of an installation. Undefined: the service that knows it did not answer. */
export interface Answers {
  processes: readonly AskedProcess[];
  snapshot: Snapshot | undefined;
  health: ListUpstreamHealthResponse | undefined;
  /** The first open holds, the oldest first. `isMore`: there are others. */
  holds: { open: readonly Hold[]; isMore: boolean } | undefined;
  nowMs: number;
}

/** A queued job older than this many seconds is a fault. The alert GenmeshJobsWait has the same bound. */
export const queuedJobSeconds = 300;
/** The same for a job that is being accepted or ended. Such a step takes seconds. The alert GenmeshJobsStand is about them too. */
const standingJobSeconds = 600;
/** A hold is overdue this many milliseconds after its check time. Billing asks about a due hold within a second. */
const holdOverdueMs = 5 * 60_000;

/** The whole installation as an operator sees it: what runs, what it runs on, what waits, and what is wrong. */
export function statusDocument(answers: Answers) {
  const { snapshot, health, nowMs } = answers;
  const told = answers.processes.flatMap((one) => ("answer" in one ? [one.answer] : []));
  const facts = {
    processes: answers.processes.map(processOf),
    stores: storesOf(told),
    upstreams: snapshot && health ? upstreamDocuments(snapshot, health, nowMs) : null,
    /** Processes of text, media and media-worker that report on upstreams. Workers have no port at which they could be asked. */
    upstreamProcesses: health?.processes ?? null,
    catalog: snapshot ? catalogOf(snapshot, told) : null,
    backlogs: backlogsOf(told),
    holds: answers.holds ? holdsOf(answers.holds, nowMs) : null,
  };
  const faults = faultsOf(facts);
  return { ok: faults.length === 0, faults, ...facts };
}

/** The document that {@link statusDocument} makes. */
export type StatusDocument = ReturnType<typeof statusDocument>;
type Facts = Omit<StatusDocument, "ok" | "faults">;

function processOf(asked: AskedProcess) {
  const { address, service } = asked;
  if (!("answer" in asked)) {
    const state = asked.isEarlier ? "earlier_version" : "away";
    return { role: service, address, state, reason: asked.fault, version: null, startedAt: null };
  }
  const { role, version, startTime, notReady } = asked.answer;
  const state = notReady === "" ? "ready" : "not_ready";
  const startedAt = isoTimeOrNull(startTime);
  return { role, address, state, reason: notReady || null, version, startedAt };
}

/** Each store once. It is up where all processes that have it say so. */
function storesOf(told: readonly GetProcessResponse[]) {
  const stores = new Map<
    string,
    { name: string; kind: string | null; isUp: boolean; roles: string[] }
  >();
  for (const { role, stores: own } of told) {
    for (const { name, kind, isUp } of own) {
      const known = stores.get(`${name} ${kind}`);
      const roles = [...new Set([...(known?.roles ?? []), role])];
      const both = isUp && (known?.isUp ?? true);
      stores.set(`${name} ${kind}`, { name, kind: kind || null, isUp: both, roles });
    }
  }
  return [...stores.values()];
}

function catalogOf({ version, models }: Snapshot, told: readonly GetProcessResponse[]) {
  const isValid = told.every((one) => one.isCatalogValid !== false);
  return { version, models: models.length, isValid };
}

/** Every process with the database counts all jobs and webhooks, but each counts its own wallets. */
function backlogsOf(told: readonly GetProcessResponse[]) {
  const sums = new Map<string, Pick<Backlog, "subject" | "kind" | "state"> & Counted>();
  for (const { subject, kind, state, ...own } of told.flatMap((one) => one.backlogs)) {
    const name = `${subject} ${kind} ${state}`;
    const known = sums.get(name) ?? { count: 0, oldestSeconds: 0 };
    const count = Number(own.count);
    sums.set(name, {
      ...{ subject, kind, state },
      count: subject === "wallets" ? known.count + count : Math.max(known.count, count),
      oldestSeconds: Math.max(known.oldestSeconds, Number(own.oldestSeconds)),
    });
  }
  return [...sums.values()].map((one) => ({ ...one, kind: one.kind || null }));
}

interface Counted {
  count: number;
  oldestSeconds: number;
}

function holdsOf({ open, isMore }: NonNullable<Answers["holds"]>, nowMs: number) {
  const isOverdue = ({ checkTime }: Hold) =>
    checkTime !== undefined && timestampMs(checkTime) < nowMs - holdOverdueMs;
  return {
    open: open.length,
    isMore,
    oldestAt: isoTimeOrNull(open[0]?.openTime),
    overdue: open.filter(isOverdue).length,
  };
}

function faultsOf({ processes, stores, upstreams, catalog, backlogs, holds }: Facts): string[] {
  const missing = [
    ...(catalog ? [] : ["the catalog in force is not known: catalog gives no answer"]),
    ...(upstreams || !catalog ? [] : ["the upstreams are not known: text gives no answer"]),
    ...(holds ? [] : ["the holds are not known: billing gives no answer"]),
  ];
  return [
    ...processes
      .filter(({ state }) => state === "away" || state === "not_ready")
      .map(({ role, address, reason }) => `process ${role} at ${address}: ${reason}`),
    ...missing,
    ...stores.filter(({ isUp }) => !isUp).map(({ name, roles }) => awayWords(name, roles)),
    ...(upstreams ?? []).flatMap(upstreamFault),
    ...(catalog?.isValid === false
      ? ["the catalog as it stands is broken; an earlier one is in force"]
      : []),
    ...backlogs.flatMap(backlogFault),
    ...(holds?.overdue
      ? [`${holds.overdue} holds are overdue: their owner gives no verdict on them`]
      : []),
  ];
}

function awayWords(name: string, roles: readonly string[]): string {
  const fault = name.startsWith("disk") ? "takes no writes" : "does not answer";
  return `the store ${name} ${fault} (seen by ${roles.join(", ")})`;
}

type UpstreamDocument = NonNullable<Facts["upstreams"]>[number];

/** An upstream that rests only because of its rate limit has no fault. */
function upstreamFault({ name, state, resting, lastError }: UpstreamDocument): string[] {
  if (state === "account_empty") return [`upstream ${name}: your account there is empty`];
  if (state === "failing") return [`upstream ${name}: its requests fail, mostly ${lastError}`];
  const reasons = resting.filter((one) => one !== "limited");
  return reasons.length > 0 ? [`upstream ${name} rests: ${reasons.join(", ")}`] : [];
}

function backlogFault({ subject, kind, state, count, oldestSeconds }: Facts["backlogs"][number]) {
  if (subject !== "jobs" || count === 0 || state === "running") return [];
  const bound = state === "queued" ? queuedJobSeconds : standingJobSeconds;
  if (oldestSeconds <= bound) return [];
  return [`a job of kind ${kind} has been ${state} for ${oldestSeconds} s`];
}
