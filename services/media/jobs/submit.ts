import type { LiveCatalog } from "#kit/catalog-client.ts";
import type { Clock } from "#kit/clock.ts";
import { refuseAtEdge } from "#kit/edge-refusal.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { checkIdempotencyKey } from "#kit/idempotency.ts";
import type { Ids } from "#kit/ids.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { Principal } from "#kit/rpc/principal.ts";
import type { Telemetry } from "#kit/telemetry/port.ts";
import type { Admission } from "#proto/genmesh/common/v1/access_pb.ts";
import type { JobEvents } from "../events.ts";
import type { FailPoints } from "../fail-points.ts";
import { maxSubmitTurns } from "../limits.ts";
import type { ReferenceInput } from "../references/port.ts";
import { type CheckedRequest, checkRequest, readReferences } from "../requests/index.ts";
import type { Driven, Driver } from "./drive.ts";
import type { Job, JobSlot, MediaKind } from "./job.ts";
import { newJob } from "./lifecycle.ts";
import type { JobStore } from "./store.ts";

/** What submitting needs. */
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
  telemetry?: Telemetry | undefined;
}

/** A caller's submission. */
export interface Submission {
  kind: MediaKind;
  body: Uint8Array;
  idempotencyKey: string | undefined;
  principal: Principal;
  admission: Admission | undefined;
  /** Aborts when the caller leaves before its body is read. */
  signal: AbortSignal;
  /** What our own URLs begin with; empty: nobody knows. */
  publicBaseUrl: string;
}

/** The job that answers a submission. */
export interface Submitted {
  job: Job;
  replayed: boolean;
}

/**
 * Accepts a job, in the order of the contract: syntax, idempotency look-up (a hit answers at once), scope, validation,
 * references, hold. Refuses with what was wrong; then the idempotency key is free again.
 */
export async function submit(submission: Submission, context: SubmitContext): Promise<Submitted> {
  const { kind, principal, admission, publicBaseUrl } = submission;
  const key = checkIdempotencyKey(submission.idempotencyKey);
  const { value: body, fingerprint } = await context.reader.read(
    submission.body,
    // Without a key nobody compares it.
    key === undefined ? {} : { fingerprint: {} },
    { accountId: principal.accountId, signal: submission.signal },
  );
  const slot = key === undefined ? undefined : { scope: `${principal.keyId}/${kind}`, key };
  return place(
    {
      ...principal,
      slot,
      fingerprint,
      retryOf: undefined,
      onOther: () => refuse(ErrorReason.IDEMPOTENCY_KEY_REUSED),
      inputs: () => (kind === "music" ? [] : readReferences(body, publicBaseUrl)),
      check: () => {
        refuseAtEdge(admission);
        return checkRequest(kind, body, context.catalog.current(), { admission, publicBaseUrl });
      },
    },
    context,
  );
}

/** Something to be made a job of, once for each slot. */
export interface Order {
  accountId: string;
  keyId: string;
  slot: JobSlot | undefined;
  fingerprint: string;
  retryOf: string | undefined;
  /** The slot has a job of another fingerprint. */
  onOther(): never;
  /** The references with their bytes, for a job that is written down already. */
  inputs(): readonly ReferenceInput[];
  /** Everything between the look-up and the references. */
  check(): CheckedRequest;
}

/** Finds the order's job, or makes it. */
export async function place(order: Order, context: SubmitContext): Promise<Submitted> {
  const { clock, ids, store, driver, events, failPoints } = context;
  let checked: CheckedRequest | undefined;
  for (let turn = 0; turn < maxSubmitTurns; turn++) {
    const known = order.slot && (await store.findBySlot(order.slot));
    if (known) {
      const joined = await join(known, order, driver);
      if (joined) {
        events.submitted(joined, true);
        return { job: joined, replayed: true };
      }
      continue;
    }
    checked ??= order.check();
    const { accountId, keyId, slot, fingerprint, retryOf } = order;
    const { references } = checked;
    const { traceparent } = context.telemetry?.active()?.headers ?? {};
    const spec = { ...checked.spec, ...(traceparent === undefined ? {} : { traceparent }) };
    const jobId = ids.make("job");
    const intent = { jobId, accountId, keyId, slot, fingerprint, spec, retryOf };
    const job = newJob(intent, clock.now());
    if (await store.insert(job)) continue;
    failPoints("inserted");
    const accepted = acceptedOf(await driver.drive(job, references));
    if (!accepted) continue;
    events.submitted(accepted, false);
    return { job: accepted, replayed: false };
  }
  return refuse(ErrorReason.SERVICE_UNAVAILABLE, { metadata: { retry_after_ms: "1000" } });
}

/** The job of the slot as it stands; undefined where it has just been rejected for somebody else. */
async function join(known: Job, order: Order, driver: Driver): Promise<Job | undefined> {
  if (known.fingerprint !== order.fingerprint) order.onOther();
  if (known.state !== "reserving") return known;
  return acceptedOf(await driver.drive(known, order.inputs()));
}

function acceptedOf(driven: Driven): Job | undefined {
  if (driven.kind === "refused") throw driven.refusal;
  return driven.kind === "accepted" ? driven.job : undefined;
}
