import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createImageVerifier, type ImageVerifier } from "#kit/images/index.ts";
import { noise, plain } from "#kit/images/samples.fixture.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import type { ReferenceInput } from "../../services/media/references/port.ts";
import { closedBaseUrl } from "../support/scripted-upstream.ts";
import {
  alice,
  bob,
  createFilesWorld,
  type FilesWorld,
  type FilesWorldOptions,
  type Ground,
  newGround,
  quotaOfSizes,
  uploadOf,
} from "./files.world.ts";

let verifier: ImageVerifier;
let ground: Ground;
let world: FilesWorld;
let host: Server;
let answer: RequestListener;
let fetched: string[];
let png: Buffer;
let other: Buffer;

beforeAll(async () => {
  verifier = createImageVerifier({ processes: 1, memoryMb: 768, timeoutMs: 20_000 });
  png = await noise().png().toBuffer();
  other = await plain(10, 20).webp().toBuffer();
});
afterAll(() => verifier[Symbol.asyncDispose]());
beforeEach(async () => {
  fetched = [];
  answer = (_, response) => response.setHeader("content-type", "text/plain").end(png);
  host = createServer((request, response) => {
    fetched.push(request.url ?? "");
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(host, "listening");
  ground = await newGround();
  world = await createFilesWorld({ ground, verifier });
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  await ground[Symbol.asyncDispose]();
  host.close();
  host.closeAllConnections();
});

async function reopen(options: Partial<FilesWorldOptions>): Promise<void> {
  await world[Symbol.asyncDispose]();
  world = await createFilesWorld({ ground, verifier, ...options });
}

const signal = new AbortController().signal;
const urlOf = (path: string) => `http://127.0.0.1:${(host.address() as AddressInfo).port}${path}`;
const dataUri = (bytes: Buffer, type = "image/png") =>
  `data:${type};base64,${bytes.toString("base64")}`;
const byUrl = (url: string, param = "input_reference.image_url"): ReferenceInput => ({
  kind: "url",
  url,
  param,
});
const byId = (fileId: string, param = "referenceFileIds[0]"): ReferenceInput => ({
  kind: "file",
  fileId,
  param,
});
const jobOf = (jobId: string, { accountId, keyId } = alice) => ({ accountId, jobId, keyId });

async function take(jobId: string, ...references: ReferenceInput[]) {
  return world.files.importer.importAll(jobOf(jobId), references, signal);
}

async function uploaded(bytes: Buffer): Promise<string> {
  const { file } = await world.client.uploadFile(uploadOf(bytes));
  return file?.fileId ?? "";
}

const listed = async () => (await world.client.listFiles({})).files;

describe("references are taken", () => {
  test("from files, data URIs and URLs, in their order, as what their bytes are", async () => {
    answer = (_, response) => response.end(other);
    const fileId = await uploaded(png);
    const taken = await take(
      "job_1",
      byUrl(urlOf("/a?b=secret")),
      byId(fileId),
      byUrl(dataUri(png)),
    );
    expect(taken.map(({ mimeType, width, height }) => [mimeType, width, height])).toEqual([
      ["image/webp", 10, 20],
      ["image/png", 120, 80],
      ["image/png", 120, 80],
    ]);
    expect(taken[1]?.fileId).toBe(fileId);
    for (const { blobKey, sizeBytes } of taken) {
      expect((await world.blobs.stat(blobKey))?.sizeBytes).toBe(sizeBytes);
    }
    const imported = (await listed()).find(({ fileId }) => fileId === taken[0]?.fileId);
    expect(imported).toMatchObject({ fileName: "reference.webp", purpose: "reference" });
    expect(JSON.stringify(imported?.fileName)).not.toContain("secret");
  });

  test("once a job: a repeat fetches nothing and changes nothing", async () => {
    const first = await take("job_1", byUrl(urlOf("/a")));
    await reopen({});
    expect(await take("job_1", byUrl(urlOf("/a")))).toEqual(first);
    await world.files.importer.unpin(jobOf("job_1"));
    expect(await take("job_1", byUrl(urlOf("/a")))).toEqual(first);
    expect(fetched).toEqual(["/a"]);
    expect(await listed()).toHaveLength(1);
  });

  test("and stored once a job, also where it is driven from many sides at once", async () => {
    const all = await Promise.all(
      Array.from({ length: 20 }, () => take("job_1", byUrl(urlOf("/a")), byUrl(dataUri(other)))),
    );
    for (const one of all) expect(one).toEqual(all[0]);
    expect(await world.quotaOf()).toEqual({
      used: quotaOfSizes(png.length, other.length),
      reserved: 0,
    });
  });

  test("and counted once an account for the same bytes, however many jobs bring them", async () => {
    await reopen({ quotaBytes: quotaOfSizes(png.length) });
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        take(`job_${i}`, byUrl(urlOf(`/${i}`)), byUrl(dataUri(png))),
      ),
    );
    expect(new Set(all.flat().map(({ fileId }) => fileId)).size).toBe(1);
    expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(png.length), reserved: 0 });
    expect(await listed()).toHaveLength(1);
    expect(await world.blobKeys()).toHaveLength(1);
    await world.files.importer.importAll(jobOf("job_b", bob), [byUrl(dataUri(png))], signal);
    expect(await world.quotaOf(bob.accountId)).toEqual({
      used: quotaOfSizes(png.length),
      reserved: 0,
    });
  });

  test("from an upload of the same bytes, which is not stored again", async () => {
    const fileId = await uploaded(png);
    expect(await take("job_1", byUrl(urlOf("/a")))).toMatchObject([{ fileId }]);
    expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(png.length), reserved: 0 });
  });
});

describe("references are refused", () => {
  const { INVALID_INPUT_REFERENCE, INVALID_REFERENCE_IMAGE, UNSAFE_REFERENCE_URL } = ErrorReason;
  const gif = () => plain(4, 4).gif().toBuffer();
  test.each<[string, () => string | Promise<string>, number]>([
    ["no URL", () => "cat.png", INVALID_INPUT_REFERENCE],
    ["another scheme", () => "ftp://example.com/a.png", INVALID_INPUT_REFERENCE],
    ["a URL without a host", () => "http://", INVALID_INPUT_REFERENCE],
    ["a URL with a password", () => "http://u:p@example.com/a.png", INVALID_INPUT_REFERENCE],
    ["data of another type", () => "data:text/plain;base64,aGFsbG8=", INVALID_INPUT_REFERENCE],
    ["data that is no base64", () => "data:image/png;base64,a%b", INVALID_INPUT_REFERENCE],
    ["data without base64", () => "data:image/svg+xml,<svg/>", INVALID_INPUT_REFERENCE],
    ["data that is no image", () => dataUri(Buffer.from("hello")), INVALID_REFERENCE_IMAGE],
    ["half an image", () => dataUri(png.subarray(0, 9_000)), INVALID_REFERENCE_IMAGE],
    ["a GIF that says it is a PNG", async () => dataUri(await gif()), INVALID_REFERENCE_IMAGE],
    ["over 20 MiB", () => dataUri(Buffer.alloc(20 * 1024 ** 2 + 1)), INVALID_REFERENCE_IMAGE],
    ["a host that is away", closedBaseUrl, INVALID_REFERENCE_IMAGE],
    ["a port that is no web server's", () => "http://127.0.0.1:25/a.png", UNSAFE_REFERENCE_URL],
  ])("%s", async (_, make, reason) => {
    const refused = take("job_1", byUrl(await make()));
    await expect(refused).rejects.toMatchObject({ reason, param: "input_reference.image_url" });
    expect(await listed()).toEqual([]);
    expect(await world.quotaOf()).toEqual({ used: 0, reserved: 0 });
  });

  test.each<[string, RequestListener]>([
    ["404", (_, response) => response.writeHead(404).end(png)],
    ["a page", (_, response) => response.setHeader("content-type", "image/png").end("<html>")],
    ["too much", (_, response) => response.end(Buffer.alloc(20 * 1024 ** 2 + 1))],
    ["half", (_, response) => response.setHeader("content-length", 99_999).end(png)],
  ])("a URL that answers with %s", async (_, listener) => {
    answer = listener;
    await expect(take("job_1", byUrl(urlOf("/a")))).rejects.toMatchObject({
      reason: INVALID_REFERENCE_IMAGE,
      param: "input_reference.image_url",
    });
    expect(await listed()).toEqual([]);
  });

  test.each([
    "http://127.0.0.1/a",
    "http://[::1]/a",
    "http://169.254.169.254/latest",
    "http://localhost/a",
    "http://2130706433/a",
    "http://10.1.2.3/a",
  ])("%s, where only public addresses may be reached", async (url) => {
    await reopen({ fetcher: createGuardedFetcher({ allowPrivate: false }) });
    await expect(take("job_1", byUrl(url))).rejects.toMatchObject({
      reason: UNSAFE_REFERENCE_URL,
      param: "input_reference.image_url",
    });
  });

  test("a file of another account, a deleted one, and one that never was", async () => {
    const fileId = await uploaded(png);
    await world.client.deleteFile({ fileId: await uploaded(other) });
    const importer = world.files.importer;
    for (const [job, id] of [
      [jobOf("job_1", bob), fileId],
      [jobOf("job_1"), "file_none"],
    ] as const) {
      await expect(importer.importAll(job, [byId(id)], signal)).rejects.toMatchObject({
        reason: ErrorReason.REFERENCE_NOT_FOUND,
        param: "referenceFileIds[0]",
      });
    }
  });

  test("beyond the quota; the one at fault is named, and the others can be let go of", async () => {
    await reopen({ quotaBytes: quotaOfSizes(png.length, other.length) - 1 });
    const fileId = await uploaded(png);
    const refused = take("job_1", byId(fileId), byUrl(dataUri(other), "here"));
    await expect(refused).rejects.toMatchObject({
      reason: ErrorReason.UPLOAD_QUOTA_EXCEEDED,
      param: "here",
    });
    expect(await world.quotaOf()).toEqual({ used: quotaOfSizes(png.length), reserved: 0 });
    await world.files.importer.unpin(jobOf("job_1"));
    await world.client.deleteFile({ fileId });
    expect(await world.blobKeys()).toEqual([]);
  });

  test("by a caller who leaves while a host is slow: all can be let go of", async () => {
    const left = new AbortController();
    answer = () => left.abort(new Error("left"));
    const fileId = await uploaded(other);
    const work = world.files.importer.importAll(
      jobOf("job_1"),
      [byId(fileId), byUrl(urlOf("/slow"))],
      left.signal,
    );
    await expect(work).rejects.toThrow("left");
    await world.files.importer.unpin(jobOf("job_1"));
    await world.client.deleteFile({ fileId });
    expect(await world.blobKeys()).toEqual([]);
  });
});

describe("what a job has pinned", () => {
  test("keeps its bytes though it is deleted, until the last job lets go", async () => {
    const fileId = await uploaded(png);
    const [first] = await take("job_1", byId(fileId), byId(fileId));
    await take("job_2", byId(fileId));
    await world.client.deleteFile({ fileId });
    await expect(take("job_3", byId(fileId))).rejects.toMatchObject({
      reason: ErrorReason.REFERENCE_NOT_FOUND,
    });
    expect(await take("job_1", byId(fileId), byId(fileId))).toMatchObject([first, first]);
    await world.files.importer.unpin(jobOf("job_1"));
    await world.files.sweep();
    expect(await world.blobKeys()).toEqual([first?.blobKey]);
    await world.files.importer.unpin(jobOf("job_2"));
    await world.files.importer.unpin(jobOf("job_2"));
    await world.files.sweep();
    expect(await world.blobKeys()).toEqual([]);
    expect(await world.files.isReferenced(first?.blobKey ?? "")).toBe(false);
  });

  test("goes within the hour where the job's end did not let go", async () => {
    const live = new Set(["job_1"]);
    await reopen({ generated: { needsReferences: async (jobId) => live.has(jobId) } });
    const fileId = await uploaded(png);
    await take("job_1", byId(fileId));
    await world.client.deleteFile({ fileId });
    await ground.clock.advance(3_600_001);
    await world.files.sweep();
    expect(await world.blobKeys()).toHaveLength(1);
    live.clear();
    await ground.clock.advance(3_600_001);
    await world.files.sweep();
    expect(await world.blobKeys()).toEqual([]);
  });
});
