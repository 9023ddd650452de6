import { readFile } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import {
  BodyForm,
  ImageAnswer,
  JobKind,
  type JobSchema,
  JobStatus,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { until } from "../support/until.ts";
import { openRaw } from "./raw.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

type JobInit = MessageInitShape<typeof JobSchema> & object;

const createTime = timestampFromMs(1_700_000_000_000);
const queued: JobInit = {
  ...{ jobId: "job_1", kind: JobKind.IMAGE, status: JobStatus.QUEUED, createTime },
};
const running: JobInit = { ...queued, status: JobStatus.RUNNING };
/** Lengths with every remainder of a division by three. */
const sizes = [1, 200_000, 200_001, 5];
const images = sizes.map((size, index) => Buffer.alloc(size, index + 65));
const completed: JobInit = {
  ...{ ...running, status: JobStatus.COMPLETED, completeTime: createTime, creditsCharged: 4n },
  outputs: sizes.map((size, index) => ({
    ...{ fileId: `file_${index}`, mimeType: "image/png", sizeBytes: BigInt(size) },
  })),
};

let edge: EdgeWorld;
let forms: BodyForm[];
let bodies: Buffer[];
let changes: JobInit[];
/** The watch's behaviour after its first messages. */
let afterwards: (signal: AbortSignal) => Promise<void>;
let watches: PromiseWithResolvers<AbortSignal>;
let located: (fileId: string) => void;
beforeAll(async () => {
  edge = await startEdge({
    media: {
      submitJob({ form, body }) {
        forms.push(form);
        bodies.push(Buffer.from(body));
        const isOpenAi =
          form !== BodyForm.UNSPECIFIED || Buffer.from(body).includes("response_format");
        const answer = isOpenAi ? ImageAnswer.B64_JSON : ImageAnswer.UNSPECIFIED;
        return { job: queued, answer };
      },
      async *watchJob(_request, { signal }: HandlerContext) {
        watches.resolve(signal);
        for (const job of changes) yield { job };
        await afterwards(signal);
      },
      locateFile({ fileId }) {
        located(fileId);
        const index = Number(fileId.slice(-1));
        const sizeBytes = BigInt(sizes[index] ?? 0);
        return { blobKey: `images/${index}`, mimeType: "image/png", sizeBytes, sha256: "ab" };
      },
    },
  });
  for (const [index, image] of images.entries()) {
    await edge.blobs.put(`images/${index}`, pieces(image), AbortSignal.timeout(60_000));
  }
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  [forms, bodies, changes] = [[], [], [queued, running, completed]];
  afterwards = async () => {};
  watches = Promise.withResolvers();
  located = () => {};
});

async function* pieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
const path = "/v1/images/generations";
const body = '{"prompt":"x"}';
const wait = { prefer: "wait" };
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

test("images come whole, with their length, with any borders of their chunks", async () => {
  const response = await edge.post(path, body, wait);
  const text = await response.text();
  expect(response.headers.get("content-length")).toBe(String(text.length));
  const { data, ...head } = JSON.parse(text) as { data: { b64_json: string }[] };
  expect(data.map(({ b64_json }) => Buffer.from(b64_json, "base64"))).toEqual(images);
  expect(head).toEqual({
    ...{ created: 1_700_000_000, id: "job_1", creditsCharged: 4, output_format: "png" },
  });
});

test.each([
  ["wait", BodyForm.OPENAI],
  ["WAIT", BodyForm.OPENAI],
  ["respond-async, wait=10", BodyForm.OPENAI],
  ['wait="10"; strict', BodyForm.OPENAI],
  ["respond-async", BodyForm.UNSPECIFIED],
  ["waiting", BodyForm.UNSPECIFIED],
  ["wait=soon", BodyForm.UNSPECIFIED],
])("Prefer: %s", async (prefer, form) => {
  const { status } = await edge.post(path, body, { prefer });
  expect([forms, status]).toEqual([[form], form === BodyForm.OPENAI ? 200 : 202]);
});

const note = process.platform === "linux" ? "" : " (skipped: Linux tells of timers)";
test.skipIf(note !== "")(`TCP asks whether who waits is there${note}`, async () => {
  changes = [queued, running];
  afterwards = untilAborted;
  using connection = await openRaw(edge.port);
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${edge.key}\r\nprefer: wait\r\n`;
  const about = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  connection.send(head + about + body);
  const signal = await watches.promise;
  // "02:" is the timer of keep-alive (Documentation/networking/proc_net_tcp.rst of Linux).
  const ports = [edge.port, connection.socket.localPort ?? 0].map((port) =>
    port.toString(16).toUpperCase().padStart(4, "0"),
  );
  const isTheirs = new RegExp(`:${ports[0]} \\w+:${ports[1]} 01 \\S+ 02:`);
  await until("the timer of keep-alive", async () =>
    isTheirs.test(await readFile("/proc/net/tcp", "utf8")),
  );
  connection.socket.destroy();
  await until("the wait to be over", () => signal.aborted);
});

test("other jobs are never waited for", async () => {
  for (const other of ["videos", "music"]) {
    const response = await edge.post(`/v1/${other}/generations`, body, {});
    expect(response.status).toBe(202);
  }
});

test.each([
  ["285 seconds", {}, 285_000],
  ["fewer seconds that the caller names", { prefer: "wait=20" }, 20_000],
  ["no more than that", { prefer: "wait=900" }, 285_000],
])("after %s the answer is 504 with the job", async (_, headers, waitMs) => {
  changes = [queued, running];
  afterwards = untilAborted;
  const asked = edge.post(path, '{"response_format":"url"}', headers);
  const signal = await watches.promise;
  await edge.clock.advance(waitMs - 1);
  expect(signal.aborted).toBe(false);
  await edge.clock.advance(1);
  const response = await asked;
  expect(response.status).toBe(504);
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(await response.json()).toMatchObject({
    error: {
      ...{ code: "job_not_finished", type: "server_error", jobId: "job_1" },
      statusUrl: `http://127.0.0.1:${edge.port}${path}/job_1`,
    },
  });
  expect(signal.aborted).toBe(true);
});

test("a caller that leaves ends the watch, not the job", async () => {
  changes = [queued];
  afterwards = untilAborted;
  const leaving = new AbortController();
  const headers = { "content-type": "application/json", ...wait };
  const asked = edge.ask(path, { method: "POST", body, headers, signal: leaving.signal });
  const signal = await watches.promise;
  leaving.abort();
  await expect(asked).rejects.toThrow();
  if (!signal.aborted) await untilAborted(signal);
});

test.each([
  [ErrorReason.CONTENT_POLICY_VIOLATION, 400, "content_policy_violation"],
  [ErrorReason.UPSTREAM_TIMEOUT, 504, "upstream_timeout"],
  [ErrorReason.GENERATION_FAILED, 502, "model_request_failed"],
  [ErrorReason.JOB_CANCELLED, 502, "model_request_failed"],
  [9_999 as ErrorReason, 502, "model_request_failed"],
])("a job that failed with %i is %i %s", async (reason, status, code) => {
  changes = [{ ...running, status: JobStatus.FAILED, error: { reason, message: "" } }];
  const response = await edge.post(path, body, wait);
  expect([response.status, response.headers.get("x-should-retry")]).toEqual([status, "false"]);
  expect(await response.json()).toMatchObject({ error: { code, jobId: "job_1" } });
});

test("what goes wrong once there is a job names it, and is not to be sent again", async () => {
  located = () => refuse(ErrorReason.FILE_NOT_FOUND);
  const response = await edge.post(path, body, wait);
  expect([response.status, response.headers.get("x-should-retry")]).toEqual([404, "false"]);
  expect(await response.json()).toMatchObject({
    error: { code: "file_not_found", jobId: "job_1" },
  });
});

const form = (fields: [string, string | Blob][]) => {
  const made = new FormData();
  for (const [name, value] of fields) made.append(name, value);
  return edge.ask("/v1/images/edits", { method: "POST", body: made });
};
const png = Buffer.concat([
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]),
  Buffer.from("IHDR"),
]);
const picture = (size: number) =>
  new Blob([new Uint8Array(Buffer.concat([png, Buffer.alloc(size)]))]);
const refusalOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string; param: string | null } };
  return [response.status, error.code, error.param];
};

test("a form becomes the body of a job, its images data URIs, in their order", async () => {
  const response = await form([
    ["image[]", picture(4 * 1024 * 1024)],
    ["prompt", 'a "boat"'],
    ["n", "2"],
    ["image[]", picture(1)],
    ["mask", picture(2)],
    ["size", "auto"],
  ]);
  expect([response.status, forms]).toEqual([200, [BodyForm.OPENAI_EDIT]]);
  const { input_reference, mask, ...rest } = JSON.parse(bodies[0]?.toString() ?? "");
  expect(Buffer.from(mask.image_url.slice(22), "base64").length - png.length).toBe(2);
  expect(rest).toEqual({ prompt: 'a "boat"', n: 2, size: "auto" });
  const urls = (input_reference as { image_url: string }[]).map(({ image_url }) => image_url);
  expect(urls.map((url) => url.slice(0, 22))).toEqual(Array(2).fill("data:image/png;base64,"));
  expect(urls.map((url) => Buffer.from(url.slice(22), "base64").length - png.length)).toEqual([
    ...[4 * 1024 * 1024, 1],
  ]);
});

test("a form that holds what is none of it is refused", async () => {
  const image: [string, Blob] = ["image", picture(1)];
  const refused = async (...fields: [string, string | Blob][]) => refusalOf(await form(fields));
  expect(await refused(image, ["mask", picture(1)], ["mask", picture(1)])).toEqual([
    ...[400, "invalid_value", "mask"],
  ]);
  expect(await refused(image, ["other", picture(1)])).toEqual([400, "invalid_value", "other"]);
  expect(await refused(image, ["n", "1"], ["n", "2"])).toEqual([400, "invalid_value", "n"]);
  expect(await refused(image, ["input_reference", "x"])).toEqual([
    ...[400, "invalid_value", "input_reference"],
  ]);
  expect(await refused(["image", picture(23 * 1024 * 1024)])).toEqual([
    ...[413, "payload_too_large", null],
  ]);
  expect(forms).toEqual([]);
  const json = await edge.post("/v1/images/edits", "{}");
  expect(await refusalOf(json)).toEqual([415, "unsupported_media_type", null]);
});
