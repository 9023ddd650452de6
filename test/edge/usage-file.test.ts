import { expect, test } from "vitest";
import { signIn } from "./console-client.ts";
import { type EdgeWorld, edgeAdminToken, startEdge } from "./world.ts";

/** Calls after which billing answers no further one. This is far above the number for the files here. */
const mostCalls = 50;

test("a file of usage ends with what may have been charged, however far its end_time lies", async () => {
  /** The ends of all spans that the gateway read from billing, in seconds. */
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
  // A replica whose clock is five minutes ahead may have made charges in a future hour.
  expect(ends[0]).toBeGreaterThan(now + 300);
  // Pages of JSON have the requested buckets.
  const page = await (await edge.ask(`${path}&limit=168`)).json();
  expect(page.data).toHaveLength(168);
  expect(page.has_more).toBe(true);
});

test.each([
  ["a caller", (_edge: EdgeWorld) => "/v1/billing/entries?format=csv"],
  [
    "an operator",
    ({ accountId }: EdgeWorld) => `/console/api/admin/accounts/${accountId}/entries/export`,
  ],
])("HEAD of %s's file of entries reads none but the first page", async (_who, pathOf) => {
  let pages = 0;
  await using edge = await startEdge({
    settings: { console: { operatorToken: edgeAdminToken } },
    billing: {
      listLines: () => {
        pages += 1;
        return { nextPageToken: pages < mostCalls ? "more" : "" };
      },
    },
  });
  const cookie = await signIn(edge.port, edgeAdminToken);
  const head = await edge.ask(pathOf(edge), { method: "HEAD", headers: { cookie } });
  expect(head.status).toBe(200);
  expect(head.headers.get("content-type")).toMatch(/^text\/csv/);
  expect(head.headers.get("content-length")).toBeNull();
  // If the gateway read on, further pages would be requested before the next request's answer.
  for (let i = 0; i < 5; i++) await (await edge.ask("/v1/models")).text();
  expect(pages).toBe(1);
});
