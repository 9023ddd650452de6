import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { UpstreamProtocol, UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { generateLimits } from "../../upstreams/media/limits.ts";
import { estimatedBytes, estimatedSeconds, longestSeconds } from "./length.ts";

describe("how long a text is spoken", () => {
  test.each([
    ["English", "x".repeat(100), 1, 10],
    ["Chinese", "中".repeat(100), 1, 30],
    ["Japanese", "のツ".repeat(50), 1, 30],
    ["Korean", "한".repeat(100), 1, 30],
    ["Chinese beyond the first plane", "𠀋".repeat(100), 1, 30],
    ["digits, which are words", "7".repeat(100), 1, 30],
    ["both", "中x".repeat(50), 1, 20],
    ["slowly", "x".repeat(100), 0.25, 40],
    ["fast", "中".repeat(100), 4, 7.5],
  ])("%s", (_, text, speed, seconds) => {
    expect(estimatedSeconds(text, speed)).toBeCloseTo(seconds, 6);
  });

  test("has a bound where all its upstreams have one", () => {
    const of = (...names: ("BUILTIN" | "OPENAI")[]) =>
      names.map((name) => create(UpstreamSchema, { protocol: UpstreamProtocol[name] }));
    expect(longestSeconds(of("BUILTIN"))).toBe(360);
    expect(longestSeconds(of("BUILTIN", "OPENAI"))).toBe(Number.POSITIVE_INFINITY);
  });
});

test("the longest text at the normal pace is kept in every format", () => {
  const seconds = estimatedSeconds("中".repeat(4_096), 1);
  for (const format of ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const) {
    expect(estimatedBytes(seconds, format)).toBeLessThan(generateLimits.speechBytes);
  }
});
