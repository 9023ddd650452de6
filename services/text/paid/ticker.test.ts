import { describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { createTicker } from "./meter.ts";

/** A running ticker of 100 ms whose sleeps and ticks are counted. */
function ticking() {
  const clock = manualClock();
  const life = new AbortController();
  const seen = { sleeps: 0, ticks: 0, waiting: 0 };
  const counted = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) => {
      seen.sleeps++;
      return clock.sleep(ms, signal);
    },
  };
  const ticker = createTicker({
    clock: counted,
    tickMs: 100,
    isIdle: () => seen.waiting === 0,
    tick: () => {
      seen.ticks++;
    },
  });
  return { clock, life, ticker, seen, ran: ticker.run(life.signal) };
}

describe("a ticker", () => {
  test("sets no timer while nothing waits", async () => {
    const { clock, seen } = ticking();
    await clock.advance(10_000);
    expect(seen).toMatchObject({ sleeps: 0, ticks: 0 });
  });

  test("ticks from the moment that something waits until nothing does", async () => {
    const { clock, seen, ticker } = ticking();
    seen.waiting = 1;
    ticker.wake();
    await clock.advance(1_000);
    expect(seen.ticks).toBe(10);
    seen.waiting = 0;
    await clock.advance(1_000);
    expect(seen.ticks).toBe(11);
    seen.waiting = 1;
    ticker.wake();
    await clock.advance(200);
    expect(seen.ticks).toBe(13);
  });

  test("that is woken while it ticks has one timer all the same", async () => {
    const { clock, seen, ticker } = ticking();
    seen.waiting = 1;
    for (let i = 0; i < 5; i++) ticker.wake();
    await clock.advance(1_000);
    expect(seen.ticks).toBe(10);
  });

  test("ends with its signal, at rest and between two ticks", async () => {
    const resting = ticking();
    resting.life.abort();
    await resting.ran;
    const busy = ticking();
    busy.seen.waiting = 1;
    busy.ticker.wake();
    await busy.clock.advance(50);
    busy.life.abort();
    await busy.ran;
    expect(busy.seen.ticks).toBeLessThanOrEqual(1);
  });
});
