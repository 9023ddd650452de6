// Turns a caller's submission into one job, however often it is repeated under its idempotency key. It also repeats a failed job
// for an operator. `drive.ts` goes on with the job that is written down here.

import { createHash } from "node:crypto";
import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import { ErrorReason, refuse, unavailable } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import { traceHeaders } from "#kit/telemetry/spans.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import { BodyForm, type ImageAnswer } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { maxOperationIdLength, maxSubmitTurns } from "../limits.ts";
import type { ReferenceInput } from "../references/port.ts";
import {
  bodyFormOf,
  bodyOf,
  type CheckedRequest,
  checkRequest,
  readImageAnswer,
  readInputs,
} from "../requests/index.ts";
import type { Driven, Driver } from "./drive.ts";
import { hasText, isShown, type Job, type JobSlot, type MediaKind, newJob } from "./job.ts";
import type { JobStore } from "./store.ts";

/** The parts that submitting needs. */
export interface SubmitContext {
  clock: Clock;
  ids: Ids;
  store: JobStore;
  driver: Driver;
  catalog: Pick<LiveCatalog, "current">;
  events: JobEvents;
  /** Reads bodies. */
  reader: JsonReader;
  failPoints: FailPoints;
}

/** A caller's submission. */
interface Submission {
  kind: MediaKind;
  body: Uint8Array;
  idempotencyKey: string | undefined;
  principal: Principal;
  admission: Admission | undefined;
  /**
   * Aborts when the caller leaves. Then the submission is dropped before its body is read, or while others of its idempotency slot are
   * before it.
   */
  signal: AbortSignal;
  /** The beginning of our own URLs. Empty: unknown. */
  publicBaseUrl: string;
  /** Id of the caller's HTTP request. */
  requestId: string | undefined;
  form: BodyForm;
}

/** A job that was accepted now, or before. */
interface Submitted {
  job: Job;
  replayed: boolean;
}

/**
 * Accepts a job, in the order of the API's contract: syntax, idempotency look-up (a hit answers at once), scope, validation,
 * references, hold. Refuses with the fault. Then the idempotency key is free again.
 */
export async function submit(
  submission: Submission,
  context: SubmitContext,
): Promise<Submitted & { answer: ImageAnswer }> {
  const { kind, principal, admission, publicBaseUrl } = submission;
  const key = checkIdempotencyKey(submission.idempotencyKey);
  const { value: body, fingerprint } = await context.reader.read(
    submission.body,
    // Without an idempotency key it is never compared.
    key === undefined ? {} : { fingerprint: {} },
    { accountId: principal.accountId, signal: submission.signal },
  );
  const form = bodyFormOf(kind, submission.form, body);
  const answer = readImageAnswer(form, body);
  // The two routes that make images have separate idempotency keys.
  const route = form === BodyForm.OPENAI_EDIT ? `${kind}/edits` : kind;
  const slot = key === undefined ? undefined : { scope: `${principal.keyId}/${route}`, key };
  const placed = await place(
    {
      ...principal,
      slot,
      fingerprint,
      retryOf: undefined,
      publicBaseUrl,
      requestId: submission.requestId,
      signal: submission.signal,
      onOther: () => refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED),
      inputs: () => readInputs(kind, body, publicBaseUrl, form),
      check: () => {
        refuseAtEdge(admission);
        const edge = { admission, publicBaseUrl, form };
        return checkRequest(kind, body, context.catalog.current(), edge);
      },
    },
    context,
  );
  return { ...placed, answer };
}

/** A request to make a job, once for each slot. */
interface Order {
  accountId: string;
  keyId: string;
  slot: JobSlot | undefined;
  fingerprint: string;
  retryOf: string | undefined;
  /** The beginning of our own URLs. Empty: unknown. */
  publicBaseUrl: string;
  /** Id of the HTTP request that brought it. */
  requestId?: string | undefined;
  /** Aborts when the caller leaves. A job that is not written down by then is dropped. */
  signal?: AbortSignal;
  /** Called where the slot has a job of another fingerprint. */
  onOther(): never;
  /** The references with their bytes, for a job that is written down already. */
  inputs(): readonly ReferenceInput[];
  /** Everything between the look-up and the references. */
  check(): CheckedRequest;
}

const deletedMessage =
  "The job of this Idempotency-Key was deleted. Use another key for a new job.";

/** Finds the order's job, or makes it. */
async function place(order: Order, context: SubmitContext): Promise<Submitted> {
  const { clock, ids, store, driver, events, failPoints } = context;
  let checked: CheckedRequest | undefined;
  for (let turn = 0; turn < maxSubmitTurns; turn++) {
    const known = order.slot && (await store.findBySlot(order.slot));
    if (known) {
      const joined = await join(known, order, driver);
      if (joined) return submitted(joined, true, events);
      continue;
    }
    checked ??= order.check();
    const { accountId, keyId, slot, fingerprint, retryOf, requestId } = order;
    const { references, webhookUrl } = checked;
    const { traceparent } = traceHeaders();
    const spec = {
      ...checked.spec,
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(requestId === undefined ? {} : { requestId }),
    };
    const jobId = ids.make("job");
    const webhook =
      webhookUrl === undefined
        ? undefined
        : { url: webhookUrl, baseUrl: order.publicBaseUrl, isAnnounced: false };
    const intent = { jobId, accountId, keyId, slot, fingerprint, spec, retryOf, webhook };
    const job = newJob(intent, clock.now());
    if (await store.insert(job, order.signal)) continue;
    failPoints("inserted");
    const accepted = acceptedOf(await driver.drive(job, references));
    if (accepted) return submitted(accepted, false, events);
  }
  throw unavailable();
}

/** Another request of the slot may have had it accepted long before, so that its caller has deleted it by now. */
function submitted(job: Job, replayed: boolean, events: JobEvents): Submitted {
  // A new job would be a second generation, and a second charge, for a retry that may have come late.
  if (!isShown(job)) refuse(ErrorReason.JOB_NOT_FOUND, { message: deletedMessage });
  events.submitted(job, replayed);
  return { job, replayed };
}

/** The slot's job in its present state. Undefined where another submission of it has just been rejected. */
async function join(known: Job, order: Order, driver: Driver): Promise<Job | undefined> {
  if (known.fingerprint !== order.fingerprint) order.onOther();
  if (known.state !== "reserving") return known;
  return acceptedOf(await driver.drive(known, order.inputs()));
}

function acceptedOf(driven: Driven): Job | undefined {
  if (driven.kind === "refused") throw driven.refusal;
  return driven.kind === "accepted" ? driven.job : undefined;
}

/** No caller's idempotency key has this scope: it holds no key id. */
const retryScope = "operator/retry";

/**
 * Makes the request of a failed job a new job of the same key, validated and held again. The same operation id makes one job. Refuses
 * with JOB_NOT_FOUND, or with OPERATION_CONFLICT where the job has not failed or its request was not kept. Refuses with
 * OPERATION_MISMATCH where the operation id was used for another job. It also refuses like a submission.
 */
export async function retryJob(
  jobId: string,
  operationId: string,
  context: SubmitContext,
): Promise<Job> {
  if (operationId.length > maxOperationIdLength) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "operation_id" } });
  }
  const source = await context.store.find(jobId);
  if (!source || !isShown(source)) refuse(ErrorReason.JOB_NOT_FOUND);
  const { accountId, keyId, spec } = source;
  const body = bodyOf(source);
  const { job } = await place(
    {
      accountId,
      keyId,
      slot: operationId === "" ? undefined : { scope: retryScope, key: operationId },
      fingerprint: createHash("sha256").update(jobId).digest("hex"),
      retryOf: jobId,
      publicBaseUrl: source.webhook?.baseUrl ?? "",
      onOther: () => refuse(ErrorReason.OPERATION_MISMATCH),
      inputs: () => readInputs(spec.kind, body),
      check: () => {
        if (source.state !== "failed") refuse(ErrorReason.OPERATION_CONFLICT);
        if (!hasText(spec)) {
          refuse(ErrorReason.OPERATION_CONFLICT, {
            message:
              "The job's request was too long to be kept after it failed. Submit it again as a new job.",
          });
        }
        return checkRequest(spec.kind, body, context.catalog.current(), {});
      },
    },
    context,
  );
  return job;
}
