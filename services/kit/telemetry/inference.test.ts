import { describe, expect, test } from "vitest";
import { createMetrics } from "#kit/base/metrics.ts";
import { createInferences, followedStream } from "./inference.ts";

describe("inferences", () => {
  const call = { operation: "chat", provider: "up", model: "m", isStream: true } as const;

  test("count what was used once, and nothing that cannot be", async () => {
    const metrics = createMetrics();
    const inferences = createInferences({ metrics });
    const usage = { inputTokens: 7, cachedInputTokens: 2, outputTokens: 3 };
    const one = inferences.begin(call);
    one.used({ ...usage, inputTokens: -1 });
    one.used({ ...usage, outputTokens: Number.NaN });
    one.used(usage);
    one.end();
    one.used(usage);
    one.end("late");
    const text = await metrics.text();
    const labels = `operation="chat",provider="up",model="m"`;
    expect(text).toContain(`genmesh_inference_input_tokens_total{${labels}} 7`);
    expect(text).toContain(`genmesh_inference_output_tokens_total{${labels}} 3`);
    expect(text).toContain(`genmesh_inference_duration_seconds_count{${labels},error=""} 1`);
    expect(text).not.toContain("late");
  });

  test("of a stream that its reader leaves end as such", async () => {
    const metrics = createMetrics();
    const inference = createInferences({ metrics }).begin(call);
    let isLeft = false;
    async function* pieces() {
      try {
        yield 1;
        yield 2;
      } finally {
        isLeft = true;
      }
    }
    for await (const piece of followedStream(pieces(), inference, () => {})) {
      if (piece === 1) break;
    }
    expect(isLeft).toBe(true);
    expect(await metrics.text()).toMatch(/genmesh_inference_first_chunk_seconds_count\{[^}]*\} 1/);
    expect(await metrics.text()).toMatch(/genmesh_inference_duration_seconds_count\{[^}]*\} 1/);
  });
});
