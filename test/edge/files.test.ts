import { createHash } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { type EdgeWorld, startEdge } from "./world.ts";

const content = Buffer.from(Array.from({ length: 1_000 }, (_, i) => i % 251));
const sha256 = createHash("sha256").update(content).digest("hex");
const etag = `"${sha256}"`;

/** The files in media: area and ids of files that the key may read. */
const readable: Record<string, { blobKey: string; mimeType: string; sizeBytes: bigint }> = {
  [`${FileArea.VIDEOS}/job_1/file_1`]: {
    blobKey: "videos/job_1/file_1",
    mimeType: "video/mp4",
    sizeBytes: 1_000n,
  },
  [`${FileArea.VIDEOS}/job_1/file_gone`]: {
    blobKey: "videos/job_1/gone",
    mimeType: "video/mp4",
    sizeBytes: 5n,
  },
  // The answer of an older media service, which has only MP3.
  [`${FileArea.SPEECH}/speech_1/file_wav`]: {
    blobKey: "videos/job_1/file_1",
    mimeType: "audio/mpeg",
    sizeBytes: 1_000n,
  },
  [`${FileArea.UPLOADS}//file_empty`]: {
    blobKey: "uploads/empty",
    mimeType: "image/png",
    sizeBytes: 0n,
  },
};
const stored = {
  fileId: "file_2",
  fileName: "cat.png",
  purpose: "vision",
  mimeType: "image/png",
  sizeBytes: 9n,
  sha256: "ab",
  width: 3,
  height: 4,
  createTime: timestampFromMs(1_700_000_000_500),
};

let edge: EdgeWorld;
let listed: unknown[];
beforeAll(async () => {
  edge = await startEdge({
    media: {
      locateFile: ({ area, parentId, fileId }) => {
        const found = readable[`${area}/${parentId}/${fileId}`];
        if (!found) refuse(ErrorReason.FILE_NOT_FOUND);
        return { ...found, sha256, fileName: 'a"b\r\nc.mp4', createTime: timestampFromMs(0) };
      },
      generateSpeech: () => ({
        speechId: "speech_1",
        audio: {
          ...{ fileId: "file_wav", mimeType: "audio/wav", sizeBytes: BigInt(content.length) },
        },
        costUsdMicros: 7n,
      }),
      listFiles: (request) => {
        listed.push(request);
        return { files: [stored, { ...stored, fileId: "file_1" }], hasMore: true };
      },
      getFile: ({ fileId }) =>
        fileId === "file_2" ? { file: stored } : refuse(ErrorReason.FILE_NOT_FOUND),
      deleteFile: ({ fileId }) => (fileId === "file_2" ? {} : refuse(ErrorReason.FILE_NOT_FOUND)),
    },
  });
  await edge.blobs.put("videos/job_1/file_1", one(content));
  await edge.blobs.put("uploads/empty", one(Buffer.alloc(0)));
});
afterAll(() => edge[Symbol.asyncDispose]());
beforeEach(() => {
  listed = [];
});

const video = "/v1/videos/generations/job_1/files/file_1";
const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code;

test("a speech of a media service of before has the type that it says, located by any replica", async () => {
  const response = await edge.post("/v1/audio/speech", "{}");
  expect(response.headers.get("content-type")).toBe("audio/wav");
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
});

describe("downloads", () => {
  test("a whole file, with everything that a client needs to keep it", async () => {
    const response = await edge.ask(video);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "video/mp4",
      "content-length": "1000",
      etag,
      "accept-ranges": "bytes",
      "cache-control": expect.stringMatching(/^private/),
      "x-content-type-options": "nosniff",
      "content-disposition": "inline; filename=\"a_bc.mp4\"; filename*=UTF-8''a%22bc.mp4",
    });
    expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
  });

  test.each([
    ["bytes=0-0", 206, "bytes 0-0/1000", content.subarray(0, 1)],
    ["bytes=10-19", 206, "bytes 10-19/1000", content.subarray(10, 20)],
    ["bytes=990-", 206, "bytes 990-999/1000", content.subarray(990)],
    ["bytes=-3", 206, "bytes 997-999/1000", content.subarray(997)],
    ["bytes=500-99999", 206, "bytes 500-999/1000", content.subarray(500)],
    ["bytes=0-1,5-6", 200, null, content],
    ["bytes=x", 200, null, content],
  ])("Range %s is %d", async (range, status, contentRange, bytes) => {
    const response = await edge.ask(video, { headers: { range } });
    expect(response.status).toBe(status);
    expect(response.headers.get("content-range")).toBe(contentRange);
    expect(response.headers.get("content-length")).toBe(String(bytes.length));
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test("a range outside is 416 with the size", async () => {
    const response = await edge.ask(video, { headers: { range: "bytes=1000-" } });
    expect(response.status).toBe(416);
    expect(response.headers.get("content-range")).toBe("bytes */1000");
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expect(response.headers.get("etag")).toBeNull();
    expect(await codeOf(response)).toBe("range_not_satisfiable");
  });

  test.each([
    [etag, 206],
    ['"other"', 200],
    ["Wed, 21 Oct 2015 07:28:00 GMT", 200],
  ])("If-Range %s is %d", async (ifRange, status) => {
    const headers = { range: "bytes=0-9", "if-range": ifRange };
    const response = await edge.ask(video, { headers });
    expect(response.status).toBe(status);
    await response.arrayBuffer();
  });

  test.each([etag, `W/${etag}`, `"x", ${etag}`, "*"])("If-None-Match %s is 304", async (sent) => {
    for (const method of ["GET", "HEAD"]) {
      const response = await edge.ask(video, { method, headers: { "if-none-match": sent } });
      expect(response.status).toBe(304);
      expect(response.headers.get("etag")).toBe(etag);
      expect(await response.text()).toBe("");
    }
  });

  test("HEAD has the headers of the whole file, with any range", async () => {
    const response = await edge.ask(video, { method: "HEAD", headers: { range: "bytes=0-9" } });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-length")).toBe("1000");
    expect(response.headers.get("etag")).toBe(etag);
    const missing = await edge.ask(`${video}x`, { method: "HEAD" });
    expect(missing.status).toBe(404);
  });

  test("download=1 is an attachment", async () => {
    const response = await edge.ask(`${video}?download=1`, { method: "HEAD" });
    expect(response.headers.get("content-disposition")).toBe(
      "attachment; filename=\"a_bc.mp4\"; filename*=UTF-8''a%22bc.mp4",
    );
  });

  test.each([
    "/v1/videos/generations/job_1/files/file_2",
    "/v1/images/generations/job_1/files/file_1",
    "/v1/music/generations/job_1/files/file_1",
    "/v1/speech/generations/job_1/files/file_1",
    "/v1/files/file_1/content",
    "/v1/videos/generations/job_1/files/file_gone",
  ])("%s is 404", async (path) => {
    const response = await edge.ask(path);
    expect(response.status).toBe(404);
    expect(response.headers.get("etag")).toBeNull();
    expect(await codeOf(response)).toBe("file_not_found");
  });

  test("an empty file is served, and has no range", async () => {
    const whole = await edge.ask("/v1/files/file_empty/content");
    expect([whole.status, await whole.text()]).toEqual([200, ""]);
    const part = await edge.ask("/v1/files/file_empty/content", { headers: { range: "bytes=0-" } });
    expect(part.status).toBe(416);
  });
});

describe("the account's files", () => {
  test("a page", async () => {
    const path = "/v1/files?limit=2&after=file_9&order=asc&purpose=vision";
    const page = (await (await edge.ask(path)).json()) as { data: { id: string }[] };
    expect(page).toMatchObject({
      object: "list",
      first_id: "file_2",
      last_id: "file_1",
      has_more: true,
    });
    expect(listed[0]).toMatchObject({
      pageSize: 2,
      after: "file_9",
      ascending: true,
      purpose: "vision",
    });
    await edge.ask("/v1/files");
    expect(listed[1]).toMatchObject({ pageSize: 100, after: "", ascending: false, purpose: "" });
  });

  test.each([
    ["limit=0", "invalid_value", "limit"],
    ["limit=1001", "invalid_value", "limit"],
    ["limit=x", "invalid_type", "limit"],
    ["limit=1&limit=2", "invalid_type", "limit"],
    ["order=up", "invalid_value", "order"],
    [`after=${"x".repeat(600)}`, "invalid_value", "after"],
  ])("?%s is 400", async (query, code, param) => {
    const response = await edge.ask(`/v1/files?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code, param } });
  });

  test("one file, and its end", async () => {
    expect(await (await edge.ask("/v1/files/file_2")).json()).toMatchObject({ id: "file_2" });
    expect((await edge.ask("/v1/files/file_3")).status).toBe(404);
    const gone = await edge.ask("/v1/files/file_2", { method: "DELETE" });
    expect(await gone.json()).toEqual({ id: "file_2", object: "file", deleted: true });
    expect((await edge.ask("/v1/files/file_3", { method: "DELETE" })).status).toBe(404);
  });
});

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
