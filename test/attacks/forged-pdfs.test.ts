import { afterAll, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import {
  chatFile,
  inputFile,
  asked as parts,
  pdfOf,
  said,
  withReaders,
} from "../e2e/file-parts.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// genmesh reads nothing of a PDF, so a false size in it has no effect. A caller that leaves before the upstream's usage is charged the
// window. No file makes a charge larger than its hold.

ownWorldOnly();

const world = await startWorld({ catalog: withReaders });
afterAll(() => world[Symbol.asyncDispose]());

/** The hold of `reader` and similar models: a token of input costs a micro, one of output four. */
const window = 200_000;
const most = window + 4 * 1_000;
const spent = async (caller: Caller) => (await caller.settled()).monthSpend;

/** A page that its tree lists ten thousand times, with a count of one. */
const forged = pdfOf(`<</Type/Pages/Count 1/Kids[${"9 0 R ".repeat(10_000)}]>>`);
const ways = [
  ["/responses", { ...parts(inputFile(forged)), model: "reader" }],
  ["/chat/completions", { ...said(chatFile(forged)), model: "reader" }],
  ["/chat/completions", { ...said(chatFile(forged)), model: "reader-legacy" }],
] as const;

test.for(ways)("leaving after the first word pays the window: %s %o", async ([path, body]) => {
  const caller = await world.caller();
  world.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
  const stream = await caller.open(path, body);
  await stream.until(({ data }) => data.includes("Hello"));
  stream.leave();
  const cost = await spent(caller);
  expect(cost).toBeGreaterThanOrEqual(window);
  expect(cost).toBeLessThanOrEqual(most);
});

test("leaving a JSON answer pays the window", async () => {
  const caller = await world.caller();
  world.play({ kind: "hang" });
  const leaving = new AbortController();
  const [path, body] = ways[0];
  const answer = caller.post(path, body, { signal: leaving.signal }).catch(() => {});
  await world.upstream.request(1);
  leaving.abort();
  await answer;
  const cost = await spent(caller);
  expect(cost).toBeGreaterThanOrEqual(window);
  expect(cost).toBeLessThanOrEqual(most);
});
