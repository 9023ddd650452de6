import { describe, expect, test } from "vitest";
import openapi from "../openapi.json" with { type: "json" };
import { usageStatuses } from "../usage-query.ts";
import { usd, usdExact, usdPrice, usdTitle } from "./app/format.ts";
import { eventsOf } from "./app/sse.ts";
import { statusMeanings } from "./app/statuses.ts";
import type { UsageBucket, UsageResult } from "./app/types.ts";
import { rangeOf } from "./app/usage-ranges.ts";
import { groupsOf, seriesOf, sum } from "./app/usage-sums.ts";

async function eventsIn(chunks: readonly Uint8Array[]) {
  const body = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const events = [];
  for await (const event of eventsOf(new Response(body))) events.push(event);
  return events;
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("events of a stream", () => {
  test("are read in chunks of any size, with comments, ids and lines of data", async () => {
    const text = ': hello\r\n\r\nid: 7\r\nevent: job\r\ndata: {"a":\r\ndata: 1}\r\n\r\ndata:x\n\n';
    const expected = [
      { event: "job", data: '{"a":\n1}', id: "7" },
      { event: "message", data: "x", id: "7" },
    ];
    expect(await eventsIn([bytesOf(text)])).toEqual(expected);
    expect(await eventsIn([...text].map(bytesOf))).toEqual(expected);
  });

  test("characters that a chunk cuts in two are whole", async () => {
    const bytes = [...bytesOf("data: é…🦊\n\n")].map((byte) => Uint8Array.of(byte));
    expect((await eventsIn(bytes)).map((event) => event.data)).toEqual(["é…🦊"]);
  });
});

test("every status that the API may answer has a meaning", () => {
  const schemas = { ...openapi.components.schemas };
  const statusesOf = (name: "Job" | "Webhook") => schemas[name].properties.status.enum;
  expect(Object.keys(statusMeanings.delivery)).toEqual(statusesOf("Webhook"));
  expect(Object.keys(statusMeanings.job)).toEqual(expect.arrayContaining(statusesOf("Job")));
  expect(Object.keys(statusMeanings.request)).toEqual([...usageStatuses]);
});

describe("money for reading", () => {
  test("cents, and what lies below a cent whole", () => {
    expect([usd(0), usd(12_345_678), usd(842), usd(9_999)]).toEqual([
      "$0.00",
      "$12.35",
      "$0.000842",
      "$0.009999",
    ]);
  });

  test("exact figures are exact, however large", () => {
    expect(usdExact(-842)).toBe("-$0.000842");
    expect(usdExact(9_007_199_254_740_991)).toBe("$9,007,199,254.740991");
    expect(usdPrice(25_000)).toBe("$0.025");
    expect(usdTitle(1_500_000)).toBe("$1.50 = 1,500,000 millionths of a US dollar");
  });
});

describe("usage", () => {
  const result = (model: string, spentUsdMicros: number): UsageResult => ({
    model,
    api_key_id: null,
    kind: null,
    num_model_requests: 1,
    input_tokens: 10,
    input_cached_tokens: 0,
    input_cache_write_tokens: 0,
    input_cache_write_long_tokens: 0,
    input_audio_tokens: 0,
    input_image_tokens: 0,
    output_tokens: 5,
    reasoning_tokens: 0,
    output_audio_tokens: 0,
    output_image_tokens: 0,
    tool_calls: 0,
    seconds: 0,
    images: 0,
    characters: 0,
    spentUsdMicros,
    spentCredits: 0,
  });
  const models = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
  const buckets: UsageBucket[] = [0, 1, 2].map((day) => ({
    start_time: day * 86_400,
    end_time: (day + 1) * 86_400,
    results: models.map((model, place) => result(model, place * 1_001 + day)),
  }));

  test("the bars of the chart add up to the total, those that share a colour too", () => {
    const groups = groupsOf(buckets, "model", new Map());
    expect(groups.map((group) => group.value)).toEqual([...models].reverse());
    const series = seriesOf(buckets, groups, (one) => one.spentUsdMicros);
    expect(series).toHaveLength(7);
    expect(series.at(-1)?.name).toBe("3 others");
    const bars = series.flatMap((one) => one.values).reduce((before, one) => before + one, 0);
    expect(bars).toBe(sum(buckets, (one) => one.spentUsdMicros));
  });

  test("each range is whole days of UTC and fits a page of the API", () => {
    const now = Date.UTC(2026, 1, 28, 23, 59, 59) / 1_000;
    for (const name of [undefined, "1d", "7d", "31d", "2026-01", "2026-02", "nonsense"]) {
      const { start, end } = rangeOf(name, now);
      expect([start % 86_400, end % 86_400]).toEqual([0, 0]);
      expect((end - start) / 86_400).toBeLessThanOrEqual(31);
    }
    expect(rangeOf("1d", now)).toMatchObject({ end: now + 1, start: now + 1 - 86_400 });
  });
});
