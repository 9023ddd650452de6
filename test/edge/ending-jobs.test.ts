import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

const queued = { jobId: "job_1", createTime: timestampFromMs(1_700_000_000_000) };
let edge: EdgeWorld;
let calls: { name: string; request: object }[];
const note = (name: string, request: object) => void calls.push({ name, request: { ...request } });
beforeAll(async () => {
  edge = await startEdge({
    media: {
      cancelJob: (request) => {
        note("cancelJob", request);
        const error = { reason: ErrorReason.JOB_CANCELLED };
        return { job: { ...queued, kind: request.kind, status: JobStatus.FAILED, error } };
      },
      deleteJob: (request) => {
        note("deleteJob", request);
        return request.jobId === "job_1" ? {} : refuse(ErrorReason.JOB_NOT_DELETABLE);
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  calls = [];
});

describe("cancelling and deleting", () => {
  test.each([
    ["images", JobKind.IMAGE, "image.job"],
    ["videos", JobKind.VIDEO, "video.job"],
    ["music", JobKind.MUSIC, "music.job"],
  ])("of %s name job and kind", async (path, kind, object) => {
    const url = `/v1/${path}/generations/job_1`;
    const job = await edge.ask(`${url}/cancel`, { method: "POST" });
    expect(job.status).toBe(200);
    expect(await job.json()).toMatchObject({
      ...{ id: "job_1", object, status: "failed", terminal: true, creditsCharged: 0 },
      error: { code: "job_cancelled", type: "invalid_request_error" },
    });
    const deleted = await edge.ask(url, { method: "DELETE" });
    expect([deleted.status, await deleted.json()]).toEqual([
      200,
      { id: "job_1", object, deleted: true },
    ]);
    const request = expect.objectContaining({ jobId: "job_1", kind });
    expect(calls).toEqual([
      { name: "cancelJob", request },
      { name: "deleteJob", request },
    ]);
    const refused = await edge.ask(`/v1/${path}/generations/job_2`, { method: "DELETE" });
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([409, "false"]);
  });
});
