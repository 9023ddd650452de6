import type { AddressInfo } from "node:net";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";
import { until } from "../support/until.ts";

/** Far more than the sockets of a caller can hold that does not read. */
const sizeBytes = 16 * 1024 * 1024;
const path = "/v1/videos/generations/job_1/files/file_1";
const file = {
  blobKey: "videos/job_1/file_1",
  mimeType: "video/mp4",
  sizeBytes: BigInt(sizeBytes),
  sha256: "ab",
  fileName: "a.mp4",
  createTime: timestampFromMs(0),
};
const each = { places: 2, waiting: 2 };

let edge: EdgeWorld;
let open: RawConnection[];
/** The number of downloads whose file was looked up. */
let located: number;
let [hostile, second, other] = ["", "", ""];
beforeEach(async () => {
  open = [];
  located = 0;
  edge = await startEdge({
    settings: { downloads: { places: 4, each, waitMs: 60_000 } },
    media: {
      locateFile: () => {
        located++;
        return file;
      },
    },
  });
  await edge.blobs.put(file.blobKey, zeros());
  hostile = edge.key;
  [second, other] = [await edge.makeAccount(), await edge.makeAccount()];
});
afterEach(async () => {
  for (const one of open) one[Symbol.dispose]();
  await edge[Symbol.asyncDispose]();
});

async function* zeros() {
  const chunk = Buffer.alloc(1024 * 1024);
  for (let left = sizeBytes; left > 0; left -= chunk.length) yield chunk;
}

/** Begins a download and reads only its first bytes. `status` is known once there is one. */
async function begin(key: string): Promise<RawConnection & { status(): number | undefined }> {
  const raw = await openRaw(edge.port);
  open.push(raw);
  raw.socket.once("data", () => raw.socket.pause());
  raw.send(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const status = () => {
    const digits = /^HTTP\/1\.1 (\d+)/.exec(raw.received())?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  return Object.assign(raw, { status });
}

/** Begins `count` downloads, and waits until all have an answer except those that the share lets wait. */
async function beginMany(key: string, count: number) {
  const all = await Promise.all(Array.from({ length: count }, () => begin(key)));
  const answered = () => all.filter((one) => one.status() !== undefined);
  await until("all but those that wait", () => answered().length === count - each.waiting);
  expect(
    answered()
      .map((one) => one.status())
      .toSorted(),
  ).toEqual([
    ...Array(each.places).fill(200),
    ...Array(count - each.places - each.waiting).fill(429),
  ]);
  return all;
}

async function whole(key: string): Promise<number> {
  const answer = await edge.ask(path, { headers: { authorization: `Bearer ${key}` } });
  expect(answer.status).toBe(200);
  return (await answer.arrayBuffer()).byteLength;
}

test("one account's slow downloads take its own places, and leave another its own", async () => {
  await beginMany(hostile, 9);
  expect(await whole(other)).toBe(sizeBytes);
});

test("one account's fast downloads, again and again, leave another its own", async () => {
  let isOver = false;
  let done = 0;
  const loops = Array.from({ length: each.places + each.waiting }, async () => {
    while (!isOver) {
      await whole(hostile);
      done++;
    }
  });
  await until("the first of them", () => done > each.places, { withinMs: 60_000 });
  expect(await whole(other)).toBe(sizeBytes);
  isOver = true;
  await Promise.all(loops);
});

test("where all places are taken, accounts take turns, however many of one wait", async () => {
  const mine = await beginMany(hostile, 4);
  await beginMany(second, 4);
  const before = located;
  const theirs = whole(other);
  await until("its request", () => located > before);
  // A later request has been served. So the download before it has arrived and waits for its turn.
  expect((await edge.ask("/v1/models")).status).toBe(200);
  const taken = mine.filter((one) => one.status() === 200);
  for (const one of taken) one[Symbol.dispose]();
  expect(await theirs).toBe(sizeBytes);
  // A download of the first account that had waited longer came first. Another one still waits.
  const waited = mine.filter((one) => !taken.includes(one));
  expect(waited.filter((one) => one.status() === 200).length).toBeGreaterThan(0);
});

test("readers that take nothing for 5 s give their places to another account", async () => {
  const mine = await beginMany(hostile, 4);
  const theirs = await beginMany(second, 4);
  const holders = [...mine, ...theirs].filter((one) => one.status() === 200);
  for (let looked = 0; looked < 3; looked++) await edge.clock.advance(2_000);
  expect(holders.filter((one) => one.socket.destroyed)).toEqual([]);
  const before = located;
  const asked = whole(other);
  await until("its request", () => located > before);
  let isOver = false;
  void asked.then(() => {
    isOver = true;
  });
  // Long before the time after which a caller that reads nothing counts as gone.
  let waitedMs = 0;
  await until("its file", async () => {
    await edge.clock.advance(500);
    waitedMs += 500;
    return isOver || waitedMs > 40_000;
  });
  expect(isOver).toBe(true);
  expect(await asked).toBe(sizeBytes);
});

test("downloads that come at once begin in as many turns of the event loop", async () => {
  const { openRead } = edge.blobs;
  const begun: number[] = [];
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  count();
  edge.blobs.openRead = (key, range) => {
    begun.push(turns);
    return openRead(key, range);
  };
  const bounds = { places: 8, each: { places: 8, waiting: 8 }, waitMs: 60_000 };
  const roomy = await edge.another({ downloads: bounds });
  const raw = await openRaw((roomy.server.address() as AddressInfo).port);
  open.push(raw);
  const ask = `GET ${path} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\nAuthorization: Bearer ${hostile}\r\n\r\n`;
  raw.send(ask.repeat(bounds.places));
  await until("all", () => begun.length === bounds.places);
  isOver = true;
  expect(new Set(begun).size).toBe(bounds.places);
});
