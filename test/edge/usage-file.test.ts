import { expect, test } from "vitest";
import { startEdge } from "./world.ts";

/** Calls after which billing answers no more: far above what the files here take. */
const mostCalls = 50;

test("a file of usage ends with what may have been charged, however far its end_time lies", async () => {
  /** Seconds at which each span ends that billing was asked for. */
  const ends: number[] = [];
  await using edge = await startEdge({
    billing: {
      getUsage({ startSeconds, widthSeconds, buckets }) {
        const start = Number(startSeconds);
        if (ends.push(start + widthSeconds * buckets) > mostCalls) throw new Error("endless");
        const startsAt = (i: number) => BigInt(start + i * widthSeconds);
        return {
          buckets: Array.from({ length: buckets }, (_, i) => ({ startSeconds: startsAt(i) })),
        };
      },
    },
  });
  const now = Math.floor(edge.clock.now() / 1_000);
  const path = `/v1/usage?start_time=${now - 86_400}&end_time=99999999999&bucket_width=1h`;
  const file = await (await edge.ask(`${path}&format=csv`)).text();
  expect(file).toMatch(/^start_time,.*\r\n$/);
  expect(ends).toHaveLength(1);
  // A replica whose clock is five minutes ahead may have charged in an hour to come.
  expect(ends[0]).toBeGreaterThan(now + 300);
  // Pages of JSON have the buckets that were asked for.
  const page = await (await edge.ask(`${path}&limit=168`)).json();
  expect(page.data).toHaveLength(168);
  expect(page.has_more).toBe(true);
});
