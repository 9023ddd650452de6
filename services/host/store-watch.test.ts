import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import { type StoreCheck, type StoreWatch, watchStores } from "./store-watch.ts";

let clock: ManualClock;
let metrics: Metrics;
let log: Record<string, unknown>[];
let watch: StoreWatch;
/** The server's behaviour at each question. */
let server: () => Promise<unknown>;
let asked: number;

beforeEach(() => {
  clock = manualClock();
  metrics = createMetrics();
  log = [];
  asked = 0;
  server = async () => {};
});
afterEach(() => watch[Symbol.asyncDispose]());

function start(check: Partial<StoreCheck> = {}): void {
  const write = (line: string) => void log.push(JSON.parse(line));
  const ask = () => {
    asked++;
    return server();
  };
  watch = watchStores({ clock, log: createLogger("info", { write }), metrics }, [
    { store: "database", isNeeded: true, ask, ...check },
  ]);
}

/** Advances the time, and lets work that became due run. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left >= 0; left -= 100) {
    await clock.advance(Math.min(100, left));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const isUp = async () => /^genmesh_store_up\{store="\w+"\} (\d)$/m.exec(await metrics.text())?.[1];
const away = () => Promise.reject(new Error("away"));
const silent = () => new Promise(() => {});

test("a server that answers is asked every other second", async () => {
  start();
  expect(watch.notReady()).toBe("the database was not asked yet");
  await pass(10_000);
  expect(watch.notReady()).toBeUndefined();
  expect(await isUp()).toBe("1");
  expect(asked).toBeGreaterThanOrEqual(5);
  expect(asked).toBeLessThanOrEqual(6);
  expect(log).toEqual([]);
});

describe.each([
  ["refuses", away],
  ["is silent", silent],
])("a server that %s", (_, fault) => {
  test("is away within seven seconds, and back within a second", async () => {
    start();
    await pass(0);
    server = fault;
    await pass(7_000);
    expect(watch.notReady()).toBe("the database does not answer");
    expect(await isUp()).toBe("0");
    server = async () => {};
    // A check of a silent store waits until its time is over.
    await pass(fault === silent ? 2_500 : 1_000);
    expect(watch.notReady()).toBeUndefined();
    expect(await isUp()).toBe("1");
    expect(log.map(({ msg }) => msg)).toEqual([
      "a store does not do its work",
      "a store does its work again",
    ]);
  });
});

test("one lost answer is no news", async () => {
  start();
  await pass(0);
  server = async () => {
    server = async () => {};
    throw new Error("the connection was just closing");
  };
  await pass(5_000);
  expect(watch.notReady()).toBeUndefined();
  expect(log).toEqual([]);
});

test("one that this process can do without shows in metric and log alone", async () => {
  server = away;
  start({ store: "blobs", isNeeded: false });
  await pass(5_000);
  expect(watch.notReady()).toBeUndefined();
  expect(await isUp()).toBe("0");
  expect(log).toMatchObject([{ store: "blobs", err: { message: "away" } }]);
});

test("it ends while a server is silent", async () => {
  server = silent;
  start();
  await pass(500);
  await watch[Symbol.asyncDispose]();
});
