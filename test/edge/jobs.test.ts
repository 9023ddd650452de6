import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { JobKind, type JobSchema, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { until } from "../support/until.ts";
import { openRaw } from "./raw.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

type JobInit = MessageInitShape<typeof JobSchema> & object;

const queued: JobInit = {
  jobId: "job_1",
  kind: JobKind.VIDEO,
  status: JobStatus.QUEUED,
  model: "svc-video-1-5",
  modelName: "Video 1.5",
  mode: "t2v",
  creditsReserved: 45n,
  durationSeconds: 6,
  resolution: "480p",
  aspectRatio: "auto",
  outputCount: 1,
  createTime: timestampFromMs(Date.UTC(2026, 0, 15, 12)),
};
const running: JobInit = {
  ...queued,
  status: JobStatus.RUNNING,
  progress: 40,
  startTime: timestampFromMs(Date.UTC(2026, 0, 15, 12, 1)),
};
const completed: JobInit = {
  ...running,
  status: JobStatus.COMPLETED,
  progress: 100,
  creditsCharged: 45n,
  completeTime: timestampFromMs(Date.UTC(2026, 0, 15, 12, 2)),
  expireTime: timestampFromMs(Date.UTC(2026, 1, 14, 12, 2)),
  outputs: [
    {
      fileId: "file_1",
      mimeType: "video/mp4",
      sizeBytes: 1234n,
      sha256: "ab",
      width: 854,
      height: 480,
      durationSeconds: 6,
    },
  ],
};

let edge: EdgeWorld;
let calls: { name: string; request: Record<string, unknown> }[];
let watched: ((signal: AbortSignal) => AsyncGenerator<{ job?: JobInit }>) | undefined;
const note = (name: string, request: object) =>
  void calls.push({ name, request: { ...request } as Record<string, unknown> });
beforeAll(async () => {
  edge = await startEdge({
    media: {
      submitJob: (request) => {
        note("submitJob", request);
        return { job: { ...queued, kind: request.kind }, replayed: request.idempotencyKey === "k" };
      },
      getJob: (request) => {
        note("getJob", request);
        return request.jobId === "job_1" ? { job: completed } : refuse(ErrorReason.JOB_NOT_FOUND);
      },
      listJobs: (request) => {
        note("listJobs", request);
        const isLast = request.pageToken !== "";
        return { jobs: [completed, queued], nextPageToken: isLast ? "" : "next", hasMore: !isLast };
      },
      async *watchJob(_request, context: HandlerContext) {
        if (!watched) refuse(ErrorReason.JOB_NOT_FOUND);
        yield* watched(context.signal);
      },
      generateSpeech: (request) => {
        note("generateSpeech", request);
        return {
          speechId: "speech_1",
          createTime: timestampFromMs(1_700_000_000_000),
          model: "speech-1",
          audio: { fileId: "file_9", mimeType: "audio/mpeg", sizeBytes: 77n, durationSeconds: 1.5 },
          characters: 12n,
          costUsdMicros: 180n,
          replayed: request.idempotencyKey === "k",
        };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  calls = [];
  watched = undefined;
});

describe("submission", () => {
  test.each([
    ["images", JobKind.IMAGE, "image.job", "images"],
    ["videos", JobKind.VIDEO, "video.job", "videos"],
    ["music", JobKind.MUSIC, "music.job", "clips"],
  ])("POST /%s/generations is 202 with the job", async (path, kind, object, outputs) => {
    const response = await edge.post(`/v1/${path}/generations`, '{"prompt":"x"}');
    expect(response.status).toBe(202);
    expect(response.headers.get("idempotency-replayed")).toBeNull();
    expect(await response.json()).toMatchObject({
      id: "job_1",
      jobId: "job_1",
      object,
      status: "queued",
      terminal: false,
      statusUrl: `http://127.0.0.1:${edge.port}/v1/${path}/generations/job_1`,
      [outputs]: [],
      error: null,
    });
    expect(calls[0]?.request).toMatchObject({ kind, body: Buffer.from('{"prompt":"x"}') });
  });

  test("the original job of a repeated key says so", async () => {
    const response = await edge.post("/v1/videos/generations", "{}", { "idempotency-key": "k" });
    expect(response.status).toBe(202);
    expect(response.headers.get("idempotency-replayed")).toBe("true");
    expect(calls[0]?.request).toMatchObject({ idempotencyKey: "k" });
  });
});

test("a completed video job, every field", async () => {
  const base = `http://127.0.0.1:${edge.port}/v1/videos/generations/job_1`;
  expect(await (await edge.ask("/v1/videos/generations/job_1")).json()).toEqual({
    id: "job_1",
    jobId: "job_1",
    object: "video.job",
    status: "completed",
    statusUrl: base,
    terminal: true,
    model: "svc-video-1-5",
    modelId: "svc-video-1-5",
    modelName: "Video 1.5",
    mode: "t2v",
    progress: 100,
    durationSeconds: 6,
    resolution: "480p",
    aspectRatio: "auto",
    creditsReserved: 45,
    creditsCharged: 45,
    createdAt: "2026-01-15T12:00:00.000Z",
    startedAt: "2026-01-15T12:01:00.000Z",
    completedAt: "2026-01-15T12:02:00.000Z",
    expiresAt: "2026-02-14T12:02:00.000Z",
    videos: [
      {
        id: "file_1",
        url: `${base}/files/file_1`,
        mimeType: "video/mp4",
        sizeBytes: 1234,
        sha256: "ab",
        width: 854,
        height: 480,
        durationSeconds: 6,
        expiresAt: "2026-02-14T12:02:00.000Z",
      },
    ],
    error: null,
  });
  expect(calls[0]?.request).toMatchObject({ jobId: "job_1", kind: JobKind.VIDEO });
});

test("an unknown job is 404", async () => {
  const response = await edge.ask("/v1/images/generations/job_2");
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { code: "job_not_found" } });
});

describe("GET /jobs", () => {
  test("pages, filtered", async () => {
    const page = await (await edge.ask("/v1/jobs?limit=5&status=failed&kind=music")).json();
    expect(page).toMatchObject({ object: "list", hasMore: true, nextCursor: "next" });
    expect(page).toMatchObject({ first_id: "job_1", last_id: "job_1", has_more: true });
    expect(calls[0]?.request).toMatchObject({
      pageSize: 5,
      pageToken: "",
      status: JobStatus.FAILED,
      kind: JobKind.MUSIC,
    });
    const last = (await (await edge.ask("/v1/jobs?cursor=next")).json()) as { data: object[] };
    expect(last).toMatchObject({ hasMore: false, nextCursor: null });
    expect(last.data.map((job) => "status" in job && job.status)).toEqual(["completed", "queued"]);
    expect(calls[1]?.request).toMatchObject({ pageSize: 20, pageToken: "next", status: 0 });
  });

  test("passes on ids and a model", async () => {
    await edge.ask("/v1/jobs?after=job_a&model=video-1");
    await edge.ask("/v1/jobs?before=job_b");
    expect(calls.map(({ request }) => request)).toMatchObject([
      { after: "job_a", before: "", pageToken: "", model: "video-1", allKeys: false },
      { after: "", before: "job_b", pageToken: "", model: "", allKeys: false },
    ]);
    const both = await edge.ask("/v1/jobs?after=job_a&before=job_b");
    expect(await both.json()).toMatchObject({ error: { code: "invalid_value", param: "before" } });
  });

  test.each(["status=done", "kind=speech", "limit=101", "status=constructor"])(
    "?%s is 400",
    async (query) => {
      expect((await edge.ask(`/v1/jobs?${query}`)).status).toBe(400);
    },
  );
});

describe("GET /jobs/{jobId}/events", () => {
  test("the job at each change, to its end", async () => {
    watched = async function* () {
      yield { job: queued };
      yield {};
      yield { job: running };
      yield { job: completed };
    };
    const response = await edge.ask("/v1/jobs/job_1/events");
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const text = await response.text();
    expect([...text.matchAll(/^event: (.+)$/gm)].map((match) => match[1])).toEqual([
      "job.queued",
      "job.running",
      "job.completed",
    ]);
    const last = JSON.parse(/.*^data: (.+)$/ms.exec(text)?.[1] ?? "");
    expect(last).toEqual(await (await edge.ask("/v1/videos/generations/job_1")).json());
  });

  test("an unknown job is 404", async () => {
    expect((await edge.ask("/v1/jobs/job_2/events")).status).toBe(404);
  });

  test("comments while nothing changes; a caller that leaves ends the watch", async () => {
    const left = Promise.withResolvers<void>();
    watched = async function* (signal) {
      yield { job: queued };
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      left.resolve();
    };
    const raw = await openRaw(edge.port);
    raw.send(
      `GET /v1/jobs/job_1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${edge.key}\r\n\r\n`,
    );
    await raw.until((text) => text.includes("event: job.queued"));
    await edge.clock.advance(15_000);
    await raw.until((text) => text.includes(": keep-alive\n"));
    raw.socket.destroy();
    await left.promise;
  });

  /** Reads a job's events, and moves the clock while none comes. */
  async function follow(): Promise<{ names: (string | undefined)[]; text: string }> {
    let isOver = false;
    const reading = (async () => (await edge.ask("/v1/jobs/job_1/events")).text())();
    const over = () => {
      isOver = true;
    };
    reading.then(over, over);
    await until(
      "the end",
      async () => {
        await edge.clock.advance(500);
        return isOver;
      },
      { withinMs: 60_000, everyMs: 2 },
    );
    const text = await reading;
    return { names: [...text.matchAll(/^event: (.+)$/gm)].map((match) => match[1]), text };
  }

  test("replicas that stop or break off cost no event, and none comes twice", async () => {
    const watches = [
      // The process stops. Its watches end, each with the present state of the job.
      [queued],
      [queued],
      [],
      [queued, running, "broken"],
      ["broken"],
      [running],
      [completed],
    ] as const;
    let watch = 0;
    watched = async function* () {
      for (const one of watches[watch++] ?? []) {
        if (one === "broken") refuse(ErrorReason.SERVICE_UNAVAILABLE);
        yield { job: one };
      }
    };
    const { names } = await follow();
    expect(names).toEqual(["job.queued", "job.running", "job.completed"]);
    expect(watch).toBe(watches.length);
  });

  test("a service that stays away ends the stream with an error after 30 s", async () => {
    let watches = 0;
    const beganAt = edge.clock.now();
    watched = async function* () {
      if (watches++ === 0) yield { job: queued };
      refuse(ErrorReason.SERVICE_UNAVAILABLE);
    };
    const { names, text } = await follow();
    expect(names).toEqual(["job.queued", "error"]);
    expect(text).toMatch(/event: error\ndata: \{"error":\{.*"code":"service_unavailable"/);
    expect(edge.clock.now() - beganAt).toBeGreaterThanOrEqual(30_000);
    // With growing pauses.
    expect(watches).toBeLessThan(30);
  });

  test("a service that is away from the beginning is a 503", async () => {
    watched = async function* () {
      refuse(ErrorReason.SERVICE_UNAVAILABLE);
      yield {};
    };
    const { names, text } = await follow();
    expect(names).toEqual([]);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "service_unavailable" } });
  });

  test("another fault is told at once", async () => {
    watched = async function* () {
      yield { job: queued };
      refuse(ErrorReason.JOB_NOT_FOUND);
    };
    const text = await (await edge.ask("/v1/jobs/job_1/events")).text();
    expect(text).toMatch(/event: error\ndata: \{"error":\{.*"code":"job_not_found"/);
  });
});

test("POST /speech/generations", async () => {
  const response = await edge.post("/v1/speech/generations", "{}", { "idempotency-key": "k" });
  expect(response.status).toBe(200);
  expect(response.headers.get("idempotency-replayed")).toBe("true");
  expect(await response.json()).toEqual({
    id: "speech_1",
    object: "speech",
    created_at: 1_700_000_000,
    model: "speech-1",
    audio: {
      id: "file_9",
      url: `http://127.0.0.1:${edge.port}/v1/speech/generations/speech_1/files/file_9`,
      mimeType: "audio/mpeg",
      sizeBytes: 77,
      durationSeconds: 1.5,
    },
    usage: { characters: 12, costUsdMicros: 180 },
  });
});

describe("URLs in answers", () => {
  const statusUrl = async (world: EdgeWorld, headers: string[]) => {
    using raw = await openRaw(world.port);
    raw.send(
      [
        "GET /v1/videos/generations/job_1 HTTP/1.1",
        `Authorization: Bearer ${world.key}`,
        ...headers,
        "",
        "",
      ].join("\r\n"),
    );
    const text = await raw.until((received) => received.includes("error"));
    return /"statusUrl":"([^"]+)\/videos/.exec(text)?.[1];
  };
  const forwarded = ["X-Forwarded-Proto: https", "X-Forwarded-Host: api.example.test"];
  const media = { getJob: () => ({ job: completed }) };

  test("are those of the request's Host; X-Forwarded-* of a peer that is not trusted counts for nothing", async () => {
    expect(await statusUrl(edge, ["Host: shop.test:81"])).toBe("http://shop.test:81/v1");
    expect(await statusUrl(edge, ["Host: shop.test", ...forwarded])).toBe("http://shop.test/v1");
    expect(await statusUrl(edge, ["Host: [::1]:80"])).toBe("http://[::1]:80/v1");
  });

  test("are those of a trusted proxy", async () => {
    await using world = await startEdge({ media, settings: { trustProxy: "127.0.0.1" } });
    expect(await statusUrl(world, ["Host: inside", ...forwarded])).toBe(
      "https://api.example.test/v1",
    );
    const bad = ["Host: inside", "X-Forwarded-Host: a/b"];
    expect(await statusUrl(world, bad)).toBeUndefined();
  });

  test.each([
    ["https://api.example.test", "https://api.example.test/v1"],
    ["https://api.example.test/gen/", "https://api.example.test/gen/v1"],
    ["https://api.example.test/v1", "https://api.example.test/v1"],
  ])("are those of the public URL %s", async (publicUrl, want) => {
    await using world = await startEdge({ media, settings: { publicUrl } });
    expect(await statusUrl(world, ["Host: inside", ...forwarded])).toBe(want);
  });

  test.each(["ftp://a", "nonsense", "https://a/?q=1", "https://u:p@a"])(
    "%s is refused at the start",
    async (publicUrl) => {
      await expect(startEdge({ settings: { publicUrl } })).rejects.toThrow(TypeError);
    },
  );
});
