// The operator's routes for work that stands still or went wrong: jobs, holds, reviews, the audit of the ledger.

import type { FastifyInstance } from "fastify";
import { isoTimeOrNull, unitName } from "#common/documents/answer-values.ts";
import { ledgerEntryDocument } from "#common/documents/entry-document.ts";
import { holdDocument, reviewDocument } from "#common/documents/hold-document.ts";
import { operatorsJobDocument } from "#common/documents/job-document.ts";
import { optionalNumber, requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { HoldState } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { JobKind, JobStatus, JobWait_Refusal } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { kindFilter, statusFilter } from "../../jobs.ts";
import { queryOneOf, queryRange } from "../../query.ts";
import { namedListOf, withNames } from "./account-names.ts";
import { type AdminCall, adminRoute, readOperationId, readUnit } from "./context.ts";
import { auditMs, maxDifferences } from "./limits.ts";

/** Routes of jobs, holds, reviews and the ledger. */
export function workRoutes(app: FastifyInstance, edge: Edge): void {
  const get = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "GET", url, handle });
  const paid = (url: string, handle: (call: AdminCall) => Promise<unknown>) =>
    adminRoute(app, edge, { method: "POST", url, asksSecret: true, handle });

  get("/jobs", async (call) => {
    const status = queryOneOf(call.request, "status", statusFilter) ?? JobStatus.UNSPECIFIED;
    const kind = queryOneOf(call.request, "kind", kindFilter) ?? JobKind.UNSPECIFIED;
    const which = { accountId: call.query("account"), status, kind, ...queryRange(call.request) };
    const asked = { ...call.page(), ...which };
    const { jobs, nextPageToken } = await call.peers.media.listAccountJobs(asked, call.options);
    return namedListOf(call, jobs.map(operatorsJobDocument), nextPageToken);
  });
  get("/jobs/:jobId", inspect);
  paid("/jobs/:jobId/retry", retry);
  get("/holds", async (call) => {
    const asked = { ...call.page(), accountId: call.query("account") };
    const { holds, nextPageToken } = await call.peers.billing.listHolds(asked, call.options);
    return namedListOf(call, holds.map(holdDocument), nextPageToken);
  });
  paid("/holds/:holdId/settle", (call) => endHold(call, "settle"));
  paid("/holds/:holdId/release", (call) => endHold(call, "release"));
  get("/reviews", async (call) => {
    const asked = { accountId: call.query("account") };
    const { reviews } = await call.peers.text.listReviews(asked, call.options);
    return namedListOf(call, reviews.map(reviewDocument));
  });
  adminRoute(app, edge, {
    ...{ method: "GET", url: "/ledger/audit", timeoutMs: auditMs },
    handle: audit,
  });
}

const waits: Readonly<Record<JobWait_Refusal, string>> = {
  [JobWait_Refusal.UNSPECIFIED]: "unknown",
  [JobWait_Refusal.TOO_MANY_REQUESTS]: "too_many_requests",
  [JobWait_Refusal.UNAVAILABLE]: "unavailable",
  [JobWait_Refusal.UNREACHABLE]: "unreachable",
  [JobWait_Refusal.ACCOUNT_EMPTY]: "account_empty",
  [JobWait_Refusal.DENIED]: "denied",
};

async function inspect(call: AdminCall) {
  const { media, billing } = call.peers;
  const found = await media.inspectJob({ jobId: call.param("jobId") }, call.options);
  const { job, accountId, holdId, attempts, events, wait, upstream } = found;
  if (!job) refuse(ErrorReason.JOB_NOT_FOUND);
  const { entries } = await billing.listEntries({ accountId, holdId }, call.options);
  return {
    ...operatorsJobDocument({ ...job, accountId }),
    ...{ holdId, attempts, upstream: upstream || null },
    events: events.map((one) => ({
      at: isoTimeOrNull(one.time),
      state: one.state,
      detail: one.detail,
    })),
    wait: wait
      ? {
          // A replica of a later release may have other refusals.
          reason: waits[wait.refusal] ?? waits[JobWait_Refusal.UNSPECIFIED],
          times: wait.times,
          nextTryAt: isoTimeOrNull(wait.nextTryTime),
        }
      : null,
    entries: entries.map(ledgerEntryDocument),
  };
}

async function retry(call: AdminCall) {
  const operationId = readOperationId(await call.body());
  const jobId = call.param("jobId");
  const { job } = await call.audited(
    { action: "job.retry", target: jobId, details: { operationId } },
    () => call.peers.media.retryJob({ jobId, operationId }, call.options),
    (made) => ({ accountId: made.job?.accountId }),
  );
  if (!job) throw new Error("media answered no job and did not refuse");
  call.reply.code(201);
  return operatorsJobDocument(job);
}

async function endHold(call: AdminCall, how: "settle" | "release") {
  const body = await call.body();
  const holdId = call.param("holdId");
  const accountId = requiredString(body, "accountId", { min: 1, max: 64 });
  const unit = readUnit(body);
  const rule = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true };
  const amount = how === "settle" ? optionalNumber(body, "amount", rule) : undefined;
  if (how === "settle" && amount === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "amount" });
  }
  const details = { unit: unitName(unit), amount: amount ?? null };
  const planned = { action: `hold.${how}`, accountId, target: holdId, details };
  const { state, chargedAmount } = await call.audited(planned, () =>
    call.peers.billing.endHold(
      {
        ...{ accountId, unit, holdId },
        ...(amount === undefined ? {} : { settleAmount: BigInt(amount) }),
      },
      call.options,
    ),
  );
  return {
    object: "hold.end",
    id: holdId,
    state: state === HoldState.SETTLED ? "settled" : "released",
    charged: chargedAmount,
  };
}

/** A difference, as the console shows it. */
interface Difference {
  accountId: string;
  unit: string;
  field: string;
  entry: bigint;
  recorded: string;
  computed: string;
}

async function audit(call: AdminCall) {
  const accountId = call.query("account");
  if (accountId !== "") await call.peers.auth.getAccount({ accountId }, call.options);
  const differences: Difference[] = [];
  for await (const { finding } of call.peers.billing.auditLedger({ accountId }, call.options)) {
    if (finding.case === "difference" && differences.length < maxDifferences) {
      const { entryNumber, field, recorded, computed } = finding.value;
      differences.push({
        accountId: finding.value.accountId,
        unit: unitName(finding.value.unit),
        ...{ field, entry: entryNumber, recorded, computed },
      });
    }
    if (finding.case !== "summary") continue;
    const { wallets, entries, differences: all } = finding.value;
    const more = all > BigInt(differences.length);
    const named = await withNames(call, differences);
    return { object: "ledger.audit", ok: all === 0n, wallets, entries, differences: named, more };
  }
  // An audit that was interrupted has proved nothing.
  return refuse(ErrorReason.SERVICE_UNAVAILABLE);
}
