import { afterAll, describe, expect, test } from "vitest";
import type { ScriptedUsage } from "../support/scripted-behaviours.ts";
import type { Caller } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Prices of bills as providers write them, charged to the micro on every way to an answer. services/text/metering has all examples.

const names = ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output"] as const;

/** Dollars for a million tokens: input, cached input, cache write, long cache write, output. A null is not named. */
function pricesOf(dollars: readonly (number | null)[]) {
  return Object.fromEntries(
    names.flatMap((name, at) => {
      const price = dollars[at] ?? null;
      return price === null ? [] : [[`${name}UsdMicrosPerMillionTokens`, price * 1_000_000]];
    }),
  );
}

const lists: Record<string, object> = {
  written: pricesOf([1, 0.1, 1.25, null, 10]),
  sol: pricesOf([2, 0.1, 2.5, null, 10]),
  opus: pricesOf([4, 0.2, 5, 8, 20]),
  haiku: {
    ...pricesOf([0.1, 0.01, 0.125, 0.2, 0.5]),
    longInput: [{ aboveInputTokens: 100_000, ...pricesOf([0.5, 0.05, 0.625, 1, 2.5]) }],
  },
  byTier: {
    ...pricesOf([2, 0.1, 2.5, null, 10]),
    servedTiers: { default: 100, priority: 200, flex: 50 },
  },
};
const window = { maxInputTokens: 400_000, maxOutputTokens: 4_000, developerPrompt: "" };

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      ...Object.entries(lists).flatMap(([id, pricing]) => [
        chat(id, { ...window, pricing }),
        chat(`${id}-at-chat`, { ...window, pricing, upstream: "legacy" }),
      ]),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

/** Tokens of input, cached c, written w, written for long l, and output. */
interface Tokens {
  input: number;
  c?: number;
  w?: number;
  l?: number;
  output: number;
  tier?: string;
}

function usageOf({ input, c = 0, w = 0, l = 0, output, tier }: Tokens): ScriptedUsage {
  const split = { ttl_30m_tokens: w, ttl_12h_tokens: l };
  return {
    ...{ input_tokens: input, output_tokens: output, total_tokens: input + output },
    input_tokens_details: {
      ...{ cached_tokens: c, cache_write_tokens: w + l },
      ...(l > 0 && { cache_write_tokens_details: split }),
    },
    ...(tier && { service_tier: tier }),
  };
}

const examples: [number: number, model: string, Tokens, micros: number][] = [
  [6, "written", { input: 1_000, w: 900, output: 10 }, 1_325],
  [7, "written", { input: 1_000, c: 500, w: 400, output: 10 }, 750],
  [13, "sol", { input: 68_000, c: 60_000, w: 7_000, output: 1_200 }, 37_500],
  [16, "opus", { input: 25_100, c: 20_000, w: 3_000, l: 2_000, output: 300 }, 41_400],
  [25, "haiku", { input: 100_000, c: 90_000, w: 5_000, output: 1_000 }, 2_525],
  [26, "haiku", { input: 100_001, c: 90_000, w: 5_000, output: 1_000 }, 12_626],
  [40, "byTier", { input: 1_000, c: 400, output: 100, tier: "priority" }, 4_480],
  [40, "byTier", { input: 1_000, c: 400, output: 100, tier: "flex" }, 1_120],
];

/** A text with more bytes than the upstream reports tokens. The hold covers a token for each byte. */
const textFor = ({ input }: Tokens) => "ab ".repeat(Math.ceil(input / 3) + 10);

type Ask = [path: string, body: object];

function asksOf(model: string, text: string): Record<string, Ask> {
  const messages = [{ role: "user", content: text }];
  return {
    responses: ["/responses", { model, input: text, max_output_tokens: 2_000 }],
    chat: ["/chat/completions", { model, messages, max_completion_tokens: 2_000 }],
    messages: ["/messages", { model, messages, max_tokens: 2_000 }],
  };
}

/** All charges of a caller. */
const spentBy = async (caller: Caller) => (await caller.settled()).monthSpend;

describe.each(examples)("example %i of %s", (_number, model, tokens, micros) => {
  const text = textFor(tokens);

  test("costs the same as JSON and as a stream, translated and as it came", async () => {
    const caller = await world.caller({ usdMicros: 100_000_000n });
    world.play({ kind: "ok", usage: usageOf(tokens) });
    const charges: number[] = [];
    const { responses: _, ...atChat } = asksOf(`${model}-at-chat`, text);
    for (const ask of [...Object.values(asksOf(model, text)), ...Object.values(atChat)]) {
      expect((await caller.post(...ask)).json.usage.costUsdMicros, ask[0]).toBe(micros);
      charges.push(await spentBy(caller));
      await caller.stream(...ask);
      charges.push(await spentBy(caller));
    }
    expect(charges).toEqual(charges.map((_charge, index) => micros * (index + 1)));
  });

  test("is charged once for its repeats, and for a compaction", async () => {
    const caller = await world.caller({ usdMicros: 100_000_000n });
    world.play({ kind: "ok", usage: usageOf(tokens) });
    for (const [name, ask] of Object.entries(asksOf(model, text))) {
      const before = await spentBy(caller);
      const key = { idempotencyKey: name };
      await caller.post(...ask, key);
      const again = await caller.post(...ask, key);
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      await caller.stream(...ask, key);
      expect((await spentBy(caller)) - before, name).toBe(micros);
    }
    const before = await spentBy(caller);
    const compacted = await caller.post("/responses/compact", { model, input: text });
    expect(compacted.status).toBe(200);
    expect((await spentBy(caller)) - before).toBe(micros);
  });

  test("twenty at once cost twenty times as much", async () => {
    const caller = await world.caller({ usdMicros: 1_000_000_000n });
    world.play({ kind: "ok", usage: usageOf(tokens) });
    const [path, body] = asksOf(model, text).responses as Ask;
    await Promise.all(Array.from({ length: 20 }, () => caller.post(path, body)));
    expect(await spentBy(caller)).toBe(20 * micros);
  });
});
