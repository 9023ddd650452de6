import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "#kit/base/errors.ts";
import {
  ModelCallSchema,
  UpstreamProtocol,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Job, type MediaKind, newJob } from "../../services/media/jobs/job.ts";
import type { JobCommand } from "../../services/media/jobs/lifecycle.ts";
import type { ClaimQuery, JobStore } from "../../services/media/jobs/store.ts";

/** The time at which jobs are made and change. */
export const now = Date.UTC(2026, 0, 15, 12);
export const failure = {
  reason: ErrorReason.GENERATION_FAILED,
  message: "failed",
  param: undefined,
};

/** An output of a job. */
export const output = {
  fileId: "file_a",
  blobKey: "outputs/job_a/1-0",
  mimeType: "image/png",
  sizeBytes: 5,
  sha256: "ab",
  width: 8,
  height: 9,
  durationSeconds: 1.5,
};

/** The properties of a new job. */
export interface JobShape {
  account?: string;
  key?: string;
  kind?: MediaKind;
  model?: string;
  upstreams?: string[];
  createdAt?: number;
  slot?: string;
  webhook?: Job["webhook"];
}

/** Makes a job. Every field that may be long, empty or odd is so. */
export function jobOf(jobId: string, shape: JobShape = {}): Job {
  const { account = "acct_a", key = "key_a", kind = "image", upstreams = ["studio"] } = shape;
  const accountId = account;
  return newJob(
    {
      jobId,
      accountId,
      keyId: key,
      slot: shape.slot === undefined ? undefined : { scope: `${key}/${kind}`, key: shape.slot },
      fingerprint: "ff",
      retryOf: "job_before",
      webhook: shape.webhook,
      spec: {
        kind,
        model: shape.model ?? "m",
        modelName: "Model \u{1f30a}",
        mode: "",
        catalogVersion: "v",
        request: {
          kind: "image",
          prompt: `é'"\u0000\u{1f30a}${"x".repeat(32_000)}`,
          count: 2,
          width: 8,
          height: 8,
          size: "8x8",
          resolution: "1k",
          aspectRatio: "1:1",
          negativePrompt: "xxx of what is not wanted",
          seed: 2_147_483_647,
        },
        references: [
          { kind: "file", fileId: "file_r", param: "referenceFileIds[0]" },
          { kind: "inline", param: "input_reference.image_url" },
        ],
        upstreamModel: "um",
        call: create(ModelCallSchema, {
          ...{
            mode: "i2v",
            model: "owner/app",
            input: '{"prompt":"${prompt}","n":{"$map":"${count}"}}',
          },
          output: "images[*].url",
        }),
        upstreams: upstreams.map((name) =>
          create(UpstreamSchema, {
            name,
            protocol: UpstreamProtocol.OPENAI,
            baseUrl: "https://example.com/v1",
            timeoutMs: 600_000n,
          }),
        ),
        price: 9_007_199_254_740_993n,
        metadata: [
          ["order.number", "é$1"],
          ["$set", ""],
        ],
      },
    },
    shape.createdAt ?? now,
  );
}

/** A search for image jobs. */
export function query(more: Partial<ClaimQuery> = {}): ClaimQuery {
  const modelLimits = new Map<string, number>();
  return { kind: "image", owner: "worker", now, fullUpstreams: [], modelLimits, ...more };
}

/** Applies commands that must be allowed. */
export async function must(
  store: JobStore,
  jobId: string,
  ...commands: JobCommand[]
): Promise<Job> {
  let job: Job | undefined;
  for (const command of commands) {
    job = await store.apply(jobId, command);
    if (!job) throw new Error(`${command.kind} was not allowed`);
  }
  if (!job) throw new Error("no command");
  return job;
}

/** An accepted job. */
export async function queuedIn(store: JobStore, jobId: string, shape: JobShape = {}): Promise<Job> {
  await store.insert(jobOf(jobId, shape));
  return must(store, jobId, { kind: "accept", now });
}
