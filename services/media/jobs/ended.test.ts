import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Job, type JobOutput, owedOf, wasCancelled } from "./job.ts";
import { holdVerdict } from "./job-holds.ts";
import { expiresAt, fail, inState, lose, now, stepped, win } from "./lifecycle.fixture.ts";
import { type JobCommand, step } from "./lifecycle.ts";

test("a job of pictures that has won is charged for those that were made", () => {
  const { spec } = inState.settling;
  const request = { kind: "image", prompt: "", count: 4 } as Job["spec"]["request"];
  const pictures = { ...spec, kind: "image", request } as const;
  for (const state of ["settling", "completed"] as const) {
    const job = { ...inState[state], spec: pictures, outputs: Array<JobOutput>(3) };
    expect(holdVerdict(job, now).verdict).toEqual({ case: "settleAmount", value: 15n });
    expect(holdVerdict(inState[state], now).verdict).toEqual({ case: "settleAmount", value: 20n });
  }
});

describe("cancelling", () => {
  const cancel: JobCommand = { kind: "cancel", now };
  const charging = (job: Job): Job => {
    const upstream = create(UpstreamSchema, { name: "a", chargesWhenCancelled: true });
    return { ...job, spec: { ...job.spec, upstreams: [upstream] } };
  };
  const sending: JobCommand = { kind: "sending", fence: 1 };
  const named: JobCommand = { kind: "resumable", fence: 1, resumeId: "task" };

  test("ends a job for its caller, and its worker has it no more", () => {
    const job = stepped(inState.running, cancel);
    expect(job).toMatchObject({ state: "failing", lease: undefined, dueAt: now + 3_000 });
    expect(job.failure?.reason).toBe(ErrorReason.JOB_CANCELLED);
    expect(wasCancelled(job)).toBe(true);
    expect(step(job, win(1))).toBeUndefined();
    expect(step(job, cancel)).toBeUndefined();
    expect(wasCancelled(inState.failed)).toBe(false);
  });

  test("keeps nothing of what its caller wrote", () => {
    expect(stepped(inState.queued, cancel, fail).spec.request).toMatchObject({ title: "" });
    expect(inState.failed.spec.request).toMatchObject({ title: "t" });
  });

  test("costs nothing, unless its upstream charges for what it may have begun", () => {
    expect(owedOf(stepped(inState.running, sending, named, cancel))).toBe(0n);
    expect(owedOf(stepped(charging(inState.queued), cancel))).toBe(0n);
    expect(owedOf(stepped(charging(inState.running), cancel))).toBe(0n);
    expect(owedOf(stepped(charging(inState.running), sending, cancel))).toBe(20n);
    expect(owedOf(stepped(charging(inState.running), sending, named, cancel))).toBe(20n);
    // The upstream has answered that the sent request led to nothing.
    const waits = { kind: "wait", fence: 1, refusal: "unavailable", until: now + 5, now } as const;
    const back: JobCommand = { ...waits, nextUpstream: false, sent: false };
    expect(owedOf(stepped(charging(inState.running), sending, back, cancel))).toBe(0n);
    // The job has failed by itself.
    expect(owedOf(stepped(charging(inState.running), sending, lose(1)))).toBe(0n);
  });
});

describe("deleting", () => {
  test("keeps what says that an idempotency key was used, as long as the job would have been kept", () => {
    const { deleted } = inState;
    expect(deleted).toMatchObject({ slot: { key: "k" }, fingerprint: "f", expiresAt, dueAt: now });
    expect(deleted.spec.request).toMatchObject({ title: "" });
    const output = { fileId: "file_a", blobKey: "b" } as Job["outputs"][number];
    const noted = {
      ...inState.failed,
      spec: { ...inState.failed.spec, metadata: [["a", "b"]] as const },
    };
    expect(stepped(noted, { kind: "delete", now }).spec.metadata).toBeUndefined();
    const erased = stepped({ ...deleted, outputs: [output], pinsHeld: true }, { kind: "erased" });
    expect(erased).toMatchObject({ outputs: [], pinned: [], pinsHeld: false, dueAt: expiresAt });
  });

  test("keeps the rest for an hour at most", () => {
    const ended = { ...inState.failed, slot: undefined };
    const day = 86_400_000;
    const forEver = { ...ended, expiresAt: undefined };
    for (const job of [{ ...ended, expiresAt: now + day }, forEver]) {
      expect(stepped(job, { kind: "delete", now }).expiresAt).toBe(now + 3_600_000);
    }
    expect(stepped(ended, { kind: "delete", now }).expiresAt).toBe(expiresAt);
  });
});
