import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { openRaw } from "../edge/raw.ts";
import { slowness } from "../support/reference-machine.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

/** One read of a connection (64 KiB) holds some 1,800 of these. */
const small = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
const requests = 1_500;
/**
 * Milliseconds of CPU time of the server's event loop while other callers wait. On a machine with other work they wait longer, and no
 * request causes that.
 */
const mostMs = 1_000;

let watched: WatchedProcess;
let key: string;
beforeAll(async () => {
  const shipped = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));
  watched = await startWatched(parse(readFileSync(shipped, "utf8")));
  ({ key } = await watched.account());
});
afterAll(() => watched?.[Symbol.asyncDispose]());

const portOf = (url: string) => Number(new URL(url).port);

/** The CPU time of the server's event loop so far, in ms. Linux shows it at once even on a busy machine, in ticks of 10 ms. */
function computedMs(): number {
  const stat = readFileSync(`/proc/${watched.pid}/task/${watched.pid}/stat`, "utf8");
  // After the name of the command.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system] = fields.slice(11, 13).map(Number);
  return 10 * ((user ?? 0) + (system ?? 0));
}

/** The server's CPU time while a liveness probe and a caller's request waited, in ms. */
async function othersWait(): Promise<number> {
  const origin = new URL(watched.baseUrl).origin;
  const beforeMs = computedMs();
  await Promise.all(
    [`${origin}/healthz`, `${watched.baseUrl}/models`].map(async (url) => {
      const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
    }),
  );
  return computedMs() - beforeMs;
}

test.each([
  ["200 connections", 200, false],
  ["300 connections that never read", 300, true],
])(
  "%s with 1,500 requests each keep other callers for less than 1 s of computing",
  { timeout: 240_000 },
  async (_, count, neverRead) => {
    await othersWait();
    const all = await Promise.all(
      Array.from({ length: count }, () => openRaw(portOf(watched.baseUrl))),
    );
    if (neverRead) for (const { socket } of all) socket.pause();
    for (const one of all) one.send(small.repeat(requests));
    const waits = [await othersWait(), await othersWait()];
    for (const one of all) one[Symbol.dispose]();
    expect(Math.max(...waits)).toBeLessThan(mostMs * slowness());
  },
);

test("all requests of a connection are answered, however many come at once", async () => {
  using raw = await openRaw(portOf(watched.baseUrl));
  raw.send(small.repeat(requests));
  await raw.until((received) => received.split("HTTP/1.1 401").length === requests + 1);
  expect(raw.received()).not.toMatch(/^connection: close/im);
});
