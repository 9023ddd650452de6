// Jobs in each state, for tests of their steps.

import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "#kit/base/errors.ts";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Job, type JobState, newJob } from "./job.ts";
import { type JobCommand, step } from "./lifecycle.ts";

export const now = Date.UTC(2026, 0, 15, 12);
export const failure = {
  reason: ErrorReason.GENERATION_FAILED,
  message: "failed",
  param: undefined,
};
const upstreams = ["a", "b"].map((name) => create(UpstreamSchema, { name }));
export const expiresAt = now + 5_000;

export function fresh(references = 0): Job {
  const inputs = Array.from(
    { length: references },
    () => ({ kind: "inline", param: "x" }) as const,
  );
  return newJob(
    {
      jobId: "job_a",
      accountId: "acct_a",
      keyId: "key_a",
      slot: { scope: "key_a/image", key: "k" },
      fingerprint: "f",
      retryOf: undefined,
      spec: {
        kind: "music",
        model: "music-1",
        modelName: "Music One",
        mode: "instrumental",
        catalogVersion: "v1",
        request: {
          kind: "music",
          mode: "instrumental",
          title: "t",
          description: undefined,
          lyrics: undefined,
        },
        references: inputs,
        upstreamModel: "music-1",
        upstreams,
        price: 20n,
      },
    },
    now,
  );
}

export function stepped(job: Job, ...commands: JobCommand[]): Job {
  return commands.reduce((one, command) => {
    const next = step(one, command);
    if (!next) throw new Error(`${command.kind} is not allowed in ${one.state}`);
    return next;
  }, job);
}

export const accept: JobCommand = { kind: "accept", now };
export const claim = (at = now): JobCommand => ({ kind: "claim", owner: "w", now: at });
export const win = (fence: number, at = now): JobCommand => ({
  kind: "win",
  fence,
  outputs: [],
  now: at,
});
export const lose = (fence: number): JobCommand => ({ kind: "lose", fence, failure, now });
export const complete = { kind: "complete", charged: 20n, expiresAt, now } satisfies JobCommand;
export const fail: JobCommand = { kind: "fail", charged: 0n, expiresAt, now };

export const inState: Record<JobState, Job> = {
  reserving: fresh(),
  queued: stepped(fresh(), accept),
  running: stepped(fresh(), accept, claim()),
  settling: stepped(fresh(), accept, claim(), win(1)),
  completed: stepped(fresh(), accept, claim(), win(1), complete),
  rejected: stepped(fresh(), { kind: "reject", failure, now }),
  failing: stepped(fresh(), accept, claim(), lose(1)),
  failed: stepped(fresh(), accept, claim(), lose(1), fail),
  deleted: stepped(fresh(), accept, claim(), lose(1), fail, { kind: "delete", now }),
};
