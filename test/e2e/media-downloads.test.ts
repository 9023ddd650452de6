import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "./caller.ts";
import { askedOf, type Document, download, ended, startMediaWorld, submit } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

let caller: Caller;
let image: Document;
let etag: string;
beforeAll(async () => {
  if (!isOwnWorld) return;
  caller = await world.caller({ credits: 5n });
  const body = { model: "scripted-image", prompt: "x" };
  [image] = (await ended(caller, await submit(caller, "images", body))).images;
  etag = `"${image.sha256}"`;
});
const get = (headers: Record<string, string> = {}) => download(caller, image.url, { headers });
const size = png.length;

test("the whole file, by GET and HEAD", async () => {
  const whole = await get();
  expect(whole.status).toBe(200);
  expect(whole.bytes.equals(png)).toBe(true);
  const headers = {
    "content-type": "image/png",
    "content-length": String(size),
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "cache-control": expect.stringMatching(/^private\b/),
    "content-disposition": expect.stringMatching(/^inline; filename="[A-Za-z0-9._-]+\.png"$/),
    "x-request-id": expect.any(String),
    etag,
  };
  expect(Object.fromEntries(whole.headers)).toMatchObject(headers);
  const head = await download(caller, image.url, { method: "HEAD" });
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  expect(Object.fromEntries(head.headers)).toMatchObject(headers);
});

describe("Range", () => {
  test.each([
    ["bytes=0-0", 0, 0],
    ["bytes=10-19", 10, 19],
    [`bytes=${size - 5}-`, size - 5, size - 1],
    ["bytes=-7", size - 7, size - 1],
    [`bytes=-${size + 99}`, 0, size - 1],
    ["bytes=100-999999999", 100, size - 1],
  ])("%s", async (range, first, last) => {
    const { status, headers, bytes } = await get({ range });
    expect(status).toBe(206);
    expect(headers.get("content-range")).toBe(`bytes ${first}-${last}/${size}`);
    expect(headers.get("content-length")).toBe(String(last - first + 1));
    expect(headers.get("etag")).toBe(etag);
    expect(bytes.equals(png.subarray(first, last + 1))).toBe(true);
  });

  test.each([`bytes=${size}-`, "bytes=-0", `bytes=${size + 1}-${size + 2}`])(
    "%s is 416",
    async (range) => {
      const answer = askedOf(await get({ range }));
      expect(refusalOf(answer)).toBe("416 invalid_request_error range_not_satisfiable null");
      expect(answer.headers.get("content-range")).toBe(`bytes */${size}`);
    },
  );

  test.each(["bytes=5-2", "items=0-1", "bytes=0-1,4-5", "nonsense"])(
    "%s is ignored",
    async (range) => {
      const { status, bytes } = await get({ range });
      expect([status, bytes.length]).toEqual([200, size]);
    },
  );

  test("If-Range: the part of what is still the same, else the whole", async () => {
    const range = "bytes=0-9";
    const same = await get({ range, "if-range": etag });
    expect([same.status, same.bytes.length]).toEqual([206, 10]);
    for (const other of ['"0000"', `W/${etag}`, new Date().toUTCString()]) {
      const { status, bytes } = await get({ range, "if-range": other });
      expect([status, bytes.length]).toEqual([200, size]);
    }
  });
});

test("If-None-Match", async () => {
  for (const method of ["GET", "HEAD"]) {
    for (const tag of [etag, `"else", W/${etag}`, "*"]) {
      const headers = { "if-none-match": tag };
      const answer = await download(caller, image.url, { method, headers });
      expect([answer.status, answer.bytes.length]).toEqual([304, 0]);
      expect(answer.headers.get("etag")).toBe(etag);
    }
  }
  expect((await get({ "if-none-match": '"else"' })).status).toBe(200);
});

test("?download=1", async () => {
  const { status, headers, bytes } = await download(caller, `${image.url}?download=1`);
  expect([status, bytes.length]).toEqual([200, size]);
  expect(headers.get("content-disposition")).toMatch(
    /^attachment; filename="[A-Za-z0-9._-]+\.png"$/,
  );
  const off = await download(caller, `${image.url}?download=0`);
  expect(off.headers.get("content-disposition")).toMatch(/^inline/);
});

test("without a key there is nothing to see", async () => {
  const response = await fetch(image.url);
  expect(response.status).toBe(401);
  expect(response.headers.get("www-authenticate")).toBe("Bearer");
  expect(response.headers.get("etag")).toBeNull();
  expect(await response.json()).toMatchObject({ error: { code: "invalid_api_key" } });
});
