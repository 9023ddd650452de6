import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runOperatorCommand } from "../support/operator-command.ts";

const perToken = (micros: number) => micros * 1_000_000;
const row = {
  inputUsdMicrosPerMillionTokens: perToken(2),
  cachedInputUsdMicrosPerMillionTokens: perToken(1),
  outputUsdMicrosPerMillionTokens: perToken(10),
  cacheWriteUsdMicrosPerMillionTokens: perToken(3),
  cacheWriteLongUsdMicrosPerMillionTokens: perToken(4),
  audioInputUsdMicrosPerMillionTokens: perToken(20),
  imageOutputUsdMicrosPerMillionTokens: perToken(30),
};
const double = Object.fromEntries(Object.entries(row).map(([name, price]) => [name, 2 * price]));
const chat = {
  ...{ id: "all-parts", kind: "chat", upstream: "main", maxInputTokens: 300_000 },
  ...{
    maxOutputTokens: 1_000,
    safetyMarginTokens: 100,
    reasoningEfforts: [],
    reasoningAliases: {},
  },
  ...{ inputModalities: ["text"], tools: ["*"] },
  pricing: {
    ...row,
    longInput: [{ aboveInputTokens: 200_000, ...double }],
    servedTiers: { priority: 200, flex: 50 },
    toolCalls: { web_search: 10_000 },
    upstreamCost: {
      inputUsdMicrosPerMillionTokens: perToken(1),
      outputUsdMicrosPerMillionTokens: perToken(5),
    },
  },
};
const image = {
  ...{ id: "image", kind: "image", upstream: "main", creditPrice: 4 },
  ...{ sizes: ["1024x1024"], availableAspectRatios: ["auto"] },
  imageOptions: [
    { quality: "low", credits: 1 },
    { quality: "high", size: "1024x1024", credits: 9 },
  ],
};
const speech = {
  ...{ id: "speech", kind: "speech", upstream: "main", voices: ["alloy"] },
  pricing: { usdMicrosPerMillionCharacters: 15_000_000 },
};
const videos = {
  ...{ id: "videos", kind: "video", upstream: "main", maxReferences: 1 },
  availableAspectRatios: ["auto"],
  videoOptions: [
    { durationSeconds: 6, resolution: "480p", modes: ["t2v"], credits: 10 },
    { durationSeconds: 8, resolution: "480p", modes: ["i2v"], credits: 12 },
  ],
};
const upstreams = { main: { protocol: "openai", baseUrl: "http://127.0.0.1:9/v1" } };

const genmesh = (words: readonly string[]) => runOperatorCommand([...words], {});

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-examples-"));
  file = join(folder, "catalog.json");
  await writeFile(file, JSON.stringify({ upstreams, models: [chat, image, speech, videos] }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("catalog check --example", () => {
  test("has a request for each part of a price, to the micro", async () => {
    const { code, out } = await genmesh(["catalog", "check", file, "--example", "--json"]);
    expect(code).toBe(0);
    const { examples } = JSON.parse(out);
    const told = examples.map((one: Record<string, unknown>) => [
      ...[one.model, one.request, one.charged, one.upstreamCostUsdMicros],
    ]);
    expect(told).toEqual([
      ["all-parts", "1,000 in, 500 out", 7_000, 3_500],
      // 2,000 × 2 + 8,000 × 1 + 500 × 10
      ["all-parts", "10,000 in, 500 out, 8,000 of the input read from a cache", 17_000, 12_500],
      ["all-parts", "10,000 in, 500 out, 8,000 of the input written to a cache", 33_000, 12_500],
      [
        ...["all-parts", "10,000 in, 500 out, 8,000 of the input written to a cache for long"],
        ...[41_000, 12_500],
      ],
      ["all-parts", "10,000 in, 500 out, 8,000 of the input audio", 169_000, 12_500],
      // 10,000 × 2 + 100 × 10 + 400 × 30
      ["all-parts", "10,000 in, 500 out, 400 of the output images", 33_000, 12_500],
      // All of it has the price of a long input.
      ["all-parts", "200,001 in, 500 out", 810_004, 202_501],
      ["all-parts", "1,000 in, 500 out, answered as priority", 14_000, 3_500],
      ["all-parts", "1,000 in, 500 out, answered as flex", 3_500, 3_500],
      ["all-parts", "1,000 in, 500 out, 1 call of web_search", 17_000, 3_500],
      // The upstream may make the dearest.
      ["image", "an image, quality and size left open", 9, null],
      ["image", "an image of quality low", 1, null],
      ["image", "an image of quality high, 1024x1024", 9, null],
      ["speech", "a speech of 1,000 characters", 15_000, null],
      ["videos", "6 s, 480p", 10, null],
      ["videos", "8 s, 480p, from an image", 12, null],
    ]);
    for (const { unit, held, charged } of examples) {
      expect(held).toBeGreaterThanOrEqual(charged);
      expect(["usd_micros", "credits"]).toContain(unit);
    }
  });

  test("is a table for people, and nothing without the option or for a broken file", async () => {
    const shown = await genmesh(["catalog", "check", file, "--example"]);
    expect(shown.out).toMatch(
      /all-parts +200,001 in, 500 out +\$\d+\.\d+ +\$0\.810004 +\$0\.202501/,
    );
    expect(shown.out).toMatch(/videos +6 s, 480p +10 credits +10 credits +–/);
    expect(shown.out.trimEnd().split("\n").at(-1)).toMatch(/4 models, no faults$/);
    expect((await genmesh(["catalog", "check", file])).out).not.toContain("500 out");
    const broken = join(folder, "broken.json");
    await writeFile(broken, JSON.stringify({ upstreams, models: [{ ...chat, upstream: "no" }] }));
    const refused = await genmesh(["catalog", "check", broken, "--example", "--json"]);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.out)).toMatchObject({ ok: false, examples: [] });
  });
});
