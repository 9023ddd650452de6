import { expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { createInferences, type InferenceCall } from "#kit/telemetry/inference.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  createUpstreamHistory,
  keptHours,
  writeMs,
} from "../../services/upstreams/health/history.ts";
import type { HistoryStore } from "../../services/upstreams/health/history-store.ts";
import { type HourRow, hourSeconds } from "../../services/upstreams/health/hours.ts";
import { until } from "../support/until.ts";

const log = createLogger("silent", { write: () => {} });
const noon = Date.UTC(2026, 0, 15, 12) / 1_000;
const call = (provider: string, more: Partial<InferenceCall> = {}): InferenceCall => ({
  ...{ operation: "chat", provider, model: "m" },
  ...more,
});
const row = (more: Partial<HourRow> = {}): HourRow => ({
  ...{ hour: noon, upstream: "a", model: "m:1.5/x", requests: 3, errors: { timeout: 1 } },
  ...{ answeredWithin: { 160: 1, 320: 2 }, firstWithin: { 80: 2 } },
  ...more,
});

async function all(store: HistoryStore, since: number): Promise<HourRow[]> {
  const rows: HourRow[] = [];
  for await (const some of store.since(since)) rows.push(...some);
  return rows;
}

/** The rules for every store of hours, and for what processes write into it. `open` gives two clients of one empty store. */
export function upstreamHistoryContract(open: () => Promise<[HistoryStore, HistoryStore]>): void {
  test("counts of one hour add up, whichever process writes them, and each hour has its own", async () => {
    const [store, other] = await open();
    const both = [store, other, store, other].map((one) => one.add(row()));
    await Promise.all(both);
    await store.add(row({ hour: noon - hourSeconds, errors: { denied: 2 } }));
    await other.add(row({ model: "other" }));
    expect(await all(other, noon)).toEqual([
      row({
        ...{ requests: 12, errors: { timeout: 4 } },
        ...{ answeredWithin: { 160: 4, 320: 8 }, firstWithin: { 80: 8 } },
      }),
      row({ model: "other" }),
    ]);
    expect((await all(store, noon - hourSeconds)).map(({ hour }) => hour)).toEqual([
      ...[noon - hourSeconds, noon, noon],
    ]);
    await store.forget(noon);
    expect((await all(store, 0)).map(({ model }) => model)).toEqual(["m:1.5/x", "other"]);
  });

  test("more rows than one read gives come all, the oldest first", async () => {
    const [store] = await open();
    const models = Array.from({ length: 1_001 }, (_, at) => `m${at}`);
    // Some at a time: together they would wait for connections longer than a store waits.
    for (let at = 0; at < models.length; at += 50) {
      await Promise.all(models.slice(at, at + 50).map((model) => store.add(row({ model }))));
    }
    await store.add(row({ hour: noon + hourSeconds, model: "last" }));
    const found = await all(store, noon);
    expect(new Set(found.map(({ model }) => model))).toEqual(new Set([...models, "last"]));
    expect(found).toHaveLength(1_002);
    expect(found.at(-1)?.model).toBe("last");
  });

  test("each process adds what it has counted, and what it has left when it ends", async () => {
    const clock = manualClock();
    const processes = (await open()).map((store) => {
      const metrics = createMetrics();
      const history = createUpstreamHistory({ metrics, clock, log, store });
      return { history, begin: createInferences({ metrics }).begin };
    });
    const [one, two] = processes as [(typeof processes)[0], (typeof processes)[0]];
    const streamed = one.begin(call("a"));
    streamed.chunk();
    streamed.end();
    one.begin(call("a")).end("timeout");
    one.begin(call("a", { model: "n" })).end("invalid_request");
    two.begin(call("b", { operation: "embeddings" })).end("denied");
    two.begin(call("a")).end("timeout");
    // It reads what it has not written itself, and what the other has written.
    const read = await until("the other's minute", async () => {
      await clock.advance(writeMs);
      const read = await one.history.read(24);
      const requests = read.reduce((sum, { all }) => sum + all.requests, 0);
      return requests === 5 ? read : undefined;
    });
    const [a, b] = read;
    expect(a).toMatchObject({
      name: "a",
      all: { requests: 4, errors: 2, errorKinds: { timeout: 2 }, first: { p50Ms: 10 } },
      models: [
        { id: "m", figures: { requests: 3, errors: 2, answered: { p50Ms: 10, p95Ms: 10 } } },
        { id: "n", figures: { requests: 1, errors: 0, answered: { p50Ms: undefined } } },
      ],
    });
    expect(a?.hours).toHaveLength(24);
    expect(a?.hours.at(-1)).toEqual({ start: noon, requests: 4, errors: 2 });
    expect(b).toMatchObject({ name: "b", all: { requests: 1, errorKinds: { denied: 1 } } });
    two.begin(call("b")).end();
    await two.history[Symbol.asyncDispose]();
    expect((await one.history.read(1))[1]?.all.requests).toBe(2);
    await one.history[Symbol.asyncDispose]();
  });

  test("hours follow the clock, and a week and a day of them is kept", async () => {
    const clock = manualClock();
    const [store] = await open();
    const metrics = createMetrics();
    const { begin } = createInferences({ metrics });
    await using history = createUpstreamHistory({ metrics, clock, log, store });
    begin(call("a")).end();
    await history.read(1);
    await clock.leap(hourSeconds * 1_000);
    await history.read(1);
    begin(call("a")).end();
    begin(call("a")).end();
    const [a] = await history.read(3);
    expect(a?.hours.map(({ requests }) => requests)).toEqual([0, 1, 2]);
    await clock.leap((keptHours - 1) * hourSeconds * 1_000);
    await history.read(1);
    expect((await all(store, 0)).map(({ requests }) => requests)).toEqual([1, 2]);
    await clock.leap(hourSeconds * 1_000);
    await history.read(1);
    expect((await all(store, 0)).map(({ requests }) => requests)).toEqual([2]);
  });
}
