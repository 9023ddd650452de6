import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { children } from "../support/children.ts";
import { describeS3, openTestBlobs } from "./blobs.s3.world.ts";
import { all, blobStoreContract } from "./blobs.suite.ts";

const script = join(import.meta.dirname, "blobs.s3-child.ts");

await describeS3("an S3 bucket", (s3) => {
  const start = children();
  describe("keeps what every blob store promises", () => blobStoreContract(() => s3.open()));

  test("a list goes on over its pages, and leaves out what is no blob", {
    timeout: 240_000,
  }, async () => {
    const url = s3.newUrl();
    const blobs = await s3.open(url);
    const keys = Array.from({ length: 510 }, (_, i) => `images/job_${String(i).padStart(3, "0")}`);
    const put = (key: string) => s3.raw.putObject(s3.bucketOf(url), key, "x");
    for (let i = 0; i < keys.length; i += 30) await Promise.all(keys.slice(i, i + 30).map(put));
    await put("images/SOMEBODY ELSE'S");
    await put("videos/other");
    expect((await all(blobs.list("images/"))).map(({ key }) => key)).toEqual(keys);
  });

  test("processes that write the same keys: of each, one wins, and its bytes are whole", {
    timeout: 240_000,
  }, async () => {
    const url = s3.newUrl();
    const blobs = await s3.open(url);
    const pair = ["1", "2"].map((fill) => start(script, "race", url, fill));
    for (const child of pair) expect(await child.next()).toBe("ready");
    for (const child of pair) child.go();
    const won = await Promise.all(pair.map(async (child) => JSON.parse(await child.next())));
    for (let key = 0; key < 20; key++) {
      const winners = won.map((keys: number[]) => keys.includes(key));
      expect(winners.filter(Boolean)).toHaveLength(1);
      const content = await buffer(await blobs.openRead(`race/${key}`));
      expect(content.equals(Buffer.alloc(300_000, winners.indexOf(true) + 1))).toBe(true);
    }
  });

  test("a bucket that is missing is made, by the process that comes first, and made anew", async () => {
    const url = s3.newUrl();
    const [one, other] = await Promise.all([s3.open(url), s3.open(url)]);
    await one.put("a/first", pieces("1"));
    await one.delete("a/first");
    await s3.raw.removeBucket(s3.bucketOf(url));
    await other.put("a/second", pieces("2"));
    expect(await text(await one.openRead("a/second"))).toBe("2");
  });

  test("credentials that are wrong are told at start, without them", async () => {
    const url = new URL(s3.newUrl());
    url.password = "wr0ngsecret";
    const error = await openTestBlobs(url.href).catch(String);
    expect(error).toMatch(/credentials are refused/);
    expect(error).not.toContain("wr0ngsecret");
  });

  test("a process that only reads does not look for the bucket", async () => {
    const url = s3.newUrl();
    const blobs = await s3.open(url, { readOnly: true });
    await expect(blobs.openRead("a/none")).rejects.toThrow();
    expect(await s3.raw.bucketExists(s3.bucketOf(url))).toBe(false);
  });
});

test("a store that knows no conditions is written without them", async () => {
  const puts: (string | undefined)[] = [];
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const condition = request.headers["if-none-match"];
    if (request.method === "PUT") puts.push(condition);
    if (request.method === "HEAD") response.statusCode = request.url?.includes("a/") ? 404 : 200;
    else if (condition) response.statusCode = 501;
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const blobs = await openTestBlobs(`s3+http://a:b@127.0.0.1:${port}/bucket`);
  await blobs.put("a/1", pieces("1"));
  await blobs.put("a/2", pieces("2"));
  expect(puts).toEqual(["*", undefined, undefined]);
  await blobs[Symbol.asyncDispose]();
  server.close();
});

async function* pieces(content: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(content);
}
