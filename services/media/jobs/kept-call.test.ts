import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { ModelCallSchema, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxFailedRequestBytes } from "../limits.ts";
import { hasText, type Job, type JobSpec, newJob } from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";

const now = Date.UTC(2026, 0, 15, 12);
const failure = { reason: ErrorReason.GENERATION_FAILED, message: "failed", param: undefined };
const expiresAt = now + 5_000;

/** A job whose model is a workflow. */
function jobOf(workflow: string): Job {
  const call = create(ModelCallSchema, { workflow, input: "{}", output: "9" });
  const spec: JobSpec = {
    kind: "music",
    model: "song",
    modelName: "Song",
    mode: "instrumental",
    request: {
      kind: "music",
      mode: "instrumental",
      title: "t",
      description: undefined,
      lyrics: undefined,
    },
    catalogVersion: "v1",
    references: [],
    upstreamModel: "song",
    price: 20n,
    call,
    upstreams: [create(UpstreamSchema, { name: "gpu" })],
  };
  const ids = { jobId: "job_a", accountId: "acct_a", keyId: "key_a", fingerprint: "f" };
  return newJob({ ...ids, slot: undefined, retryOf: undefined, spec }, now);
}

function stepped(job: Job, ...commands: JobCommand[]): Job {
  return commands.reduce((one, command) => {
    const next = step(one, command);
    if (!next) throw new Error(`${command.kind} is not allowed in ${one.state}`);
    return next;
  }, job);
}

const taken: JobCommand[] = [
  { kind: "accept", now },
  { kind: "claim", owner: "w", now },
];
const failed: JobCommand[] = [
  { kind: "lose", fence: 1, failure, now },
  { kind: "fail", charged: 0n, expiresAt, now },
];

test("how a model is called goes with a refusal and with completion", () => {
  const job = jobOf("{}");
  const rejected = stepped(job, { kind: "reject", failure, now });
  expect(rejected.spec).not.toHaveProperty("call");
  const completed = stepped(
    job,
    ...taken,
    { kind: "win", fence: 1, outputs: [], now },
    { kind: "complete", charged: 20n, expiresAt, now },
  );
  expect(completed.spec).not.toHaveProperty("call");
});

test("a failed job keeps it for a repeat, where it takes little room", () => {
  const small = stepped(jobOf("{}"), ...taken, ...failed);
  expect(small.spec.call?.workflow).toBe("{}");
  expect(hasText(small.spec)).toBe(true);
  const large = stepped(jobOf("x".repeat(maxFailedRequestBytes)), ...taken, ...failed);
  expect(large.spec).not.toHaveProperty("call");
  expect(hasText(large.spec)).toBe(false);
});
