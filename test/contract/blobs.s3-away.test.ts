import { once } from "node:events";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { silenceMs } from "#kit/store/blobs/s3-limits.ts";
import { parseS3Url } from "#kit/store/blobs/s3-url.ts";
import { BlobExistsError } from "#kit/store/blobs.ts";
import { children } from "../support/children.ts";
import { promptly } from "../support/promptly.ts";
import { openTcpWire, type TcpWire } from "../support/tcp-wire.ts";
import { describeS3, openTestBlobs } from "./blobs.s3.world.ts";
import { all } from "./blobs.suite.ts";

const script = join(import.meta.dirname, "blobs.s3-child.ts");
const mebibyte = 1 << 20;

await describeS3("an S3 store that goes away", (s3) => {
  const start = children();
  const wires: TcpWire[] = [];
  afterEach(async () => {
    for (const wire of wires.splice(0)) await wire[Symbol.asyncDispose]();
  });
  /** A bucket, with one store through a connection that a test can cut, and one directly. */
  const lay = async () => {
    const direct = s3.newUrl();
    const { host, port } = parseS3Url(direct);
    const wire = await openTcpWire(`${host}:${port}`);
    wires.push(wire);
    const url = new URL(direct);
    url.host = wire.address;
    return { wire, direct, url: url.href };
  };
  /** Calls `what` when `bytes` bytes of requests have passed. */
  const after = (wire: TcpWire, bytes: number, what: () => void) => {
    let passed = 0;
    wire.onRequest = (chunk) => {
      passed += chunk.length;
      if (passed < bytes) return;
      wire.onRequest = () => {};
      what();
    };
  };

  test("an upload that is cut is refused, and leaves nothing", async () => {
    const { wire, direct, url } = await lay();
    const blobs = await s3.open(url);
    after(wire, 2 * mebibyte, () => wire.cut());
    expect(await refusalOf(blobs.put("a/cut", pieces(8)))).toBe(true);
    const beside = await s3.open(direct);
    expect(await all(beside.list())).toEqual([]);
    wire.mend();
    await blobs.put("a/cut", pieces(8));
    expect((await beside.stat("a/cut"))?.sizeBytes).toBe(8 * mebibyte);
  });

  test("a process that dies while it uploads leaves nothing", async () => {
    const { wire, direct, url } = await lay();
    const beside = await s3.open(direct);
    const child = start(script, "large", url, "32");
    expect(await child.next()).toBe("ready");
    after(wire, 16 * mebibyte, () => child.process.kill("SIGKILL"));
    child.go();
    await once(child.process, "exit");
    expect(await beside.stat("a/large")).toBeUndefined();
    expect(await all(beside.list())).toEqual([]);
  });

  test("an upload whose answer is lost knows its own work again", async () => {
    const { wire, url } = await lay();
    const blobs = await s3.open(url);
    wire.onRequest = (request) => {
      if (!request.includes("PUT ")) return;
      wire.onReply = () => {
        wire.onReply = () => {};
        wire.snap();
      };
    };
    const stored = await blobs.put("a/lost", pieces(1));
    expect(await blobs.stat("a/lost")).toMatchObject({ sizeBytes: stored.sizeBytes });
    await expect(blobs.put("a/lost", pieces(1))).rejects.toThrow(BlobExistsError);
  });

  test("an upload that is lost does not take another's work for its own", async () => {
    const { wire, direct, url } = await lay();
    const [blobs, beside] = [await s3.open(url), await s3.open(direct)];
    const other = Promise.withResolvers<unknown>();
    after(wire, 2 * mebibyte, () => {
      wire.cut();
      other.resolve(beside.put("a/raced", pieces(1)).finally(() => wire.mend()));
    });
    await expect(blobs.put("a/raced", pieces(4))).rejects.toThrow(BlobExistsError);
    await other.promise;
    expect((await beside.stat("a/raced"))?.sizeBytes).toBe(mebibyte);
  });

  test("an upload that is stopped half-way ends at once, and leaves nothing", async () => {
    const { wire, direct, url } = await lay();
    const blobs = await s3.open(url);
    const stop = new AbortController();
    after(wire, 2 * mebibyte, () => stop.abort(new Error("enough")));
    await expect(blobs.put("a/stopped", pieces(32), stop.signal)).rejects.toThrow("enough");
    expect(await all((await s3.open(direct)).list())).toEqual([]);
  });

  test("a store that is silent holds no caller up for long", async () => {
    const { wire, url } = await lay();
    const blobs = await s3.open(url);
    await blobs.put("a/there", pieces(1));
    wire.hold();
    const refusals = await promptly(silenceMs + 3_000, () => {
      const ends = [blobs.stat("a/there"), blobs.openRead("a/there"), blobs.delete("a/there")];
      return Promise.all([...ends, all(blobs.list())].map(refusalOf));
    });
    expect(refusals).toEqual(Array(4).fill(true));
    wire.mend();
    await blobs.check();
  });

  test("a body that breaks off, or stays away, ends with a refusal", async () => {
    const { wire, url } = await lay();
    const blobs = await s3.open(url);
    await blobs.put("a/large", pieces(32));
    for (const trouble of [wire.snap, wire.hold]) {
      const body = await blobs.openRead("a/large");
      const reading = refusalOf(buffer(body));
      wire.onReply = () => {
        wire.onReply = () => {};
        trouble();
      };
      expect(await reading).toBe(true);
    }
    wire.mend();
  });

  test("a reader may take its time", async () => {
    const { url } = await lay();
    const blobs = await s3.open(url);
    await blobs.put("a/large", pieces(32));
    const body = await blobs.openRead("a/large");
    let read = 0;
    for await (const chunk of body) {
      // The reader pauses longer than a store may be silent.
      if (read === 0) await new Promise((resolve) => setTimeout(resolve, silenceMs + 1_500));
      read += (chunk as Buffer).length;
    }
    expect(read).toBe(32 * mebibyte);
  });

  test("need not be there when the process starts", async () => {
    const { wire, url } = await lay();
    wire.cut();
    const blobs = await s3.open(url);
    await expect(blobs.check()).rejects.toThrow();
    wire.mend();
    await blobs.put("a/first", pieces(1));
  });

  test("sockets that died between two requests are not noticed", async () => {
    const { wire, url } = await lay();
    const blobs = await s3.open(url);
    await blobs.put("a/there", pieces(1));
    for (let i = 0; i < 5; i++) {
      wire.snap();
      expect((await blobs.stat("a/there"))?.sizeBytes).toBe(mebibyte);
    }
  });

  test("a store without a server is refused", async () => {
    const blobs = await openTestBlobs("s3+http://a:b@127.0.0.1:1/bucket");
    expect(await refusalOf(blobs.put("a/b", pieces(1)))).toBe(true);
    await blobs[Symbol.asyncDispose]();
  });
});

async function* pieces(mebibytes: number): AsyncIterable<Uint8Array> {
  for (let i = 0; i < mebibytes; i++) yield Buffer.alloc(mebibyte, i + 1);
}

async function refusalOf(work: Promise<unknown>): Promise<boolean> {
  const error = await work.catch((reason) => reason);
  return isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
}
