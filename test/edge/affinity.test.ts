import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

let edge: EdgeWorld;
let seen: (string | null)[];
const note = ({ requestHeader }: HandlerContext) =>
  void seen.push(requestHeader.get("genmesh-affinity"));
const job = { jobId: "job_1", kind: JobKind.IMAGE, status: JobStatus.QUEUED };

beforeAll(async () => {
  edge = await startEdge({
    text: {
      generate(_, context) {
        note(context);
        return { body: Buffer.from("{}") };
      },
      async *streamGenerate(_, context) {
        note(context);
        yield { part: { case: "events", value: Buffer.from("data: [DONE]\n\n") } };
      },
    },
    media: {
      submitJob(_, context) {
        note(context);
        return { job };
      },
      generateSpeech(_, context) {
        note(context);
        return { speechId: "speech_1", audio: { fileId: "file_1" } };
      },
      getJob(_, context) {
        note(context);
        return { job };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  seen = [];
});

test.each([
  ["responses", "{}"],
  ["responses", '{"stream":true}'],
  ["responses/compact", "{}"],
  ["chat/completions", "{}"],
  ["images/generations", "{}"],
  ["speech/generations", "{}"],
])(
  "equal requests of /%s %s go where they find each other, others anywhere",
  async (path, body) => {
    for (const key of ["a", "a", "b"]) {
      await edge.post(`/v1/${path}`, body, { "idempotency-key": key });
    }
    await edge.post(`/v1/${path}`, body);
    expect(seen).toHaveLength(4);
    expect(seen[0]).toMatch(/^[\w-]{43}$/);
    expect(seen[1]).toBe(seen[0]);
    expect(seen[2]).not.toBe(seen[0]);
    expect(seen[3]).toBeNull();
  },
);

test("a read goes anywhere, with any headers", async () => {
  await edge.ask("/v1/images/generations/job_1", { headers: { "idempotency-key": "a" } });
  expect(seen).toEqual([null]);
});
