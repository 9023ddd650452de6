import { describe, expect, test } from "vitest";
import { manualClock } from "#kit/time/clock.ts";
import { createSilence, type Silence, unseenTokens } from "./hidden-time.ts";

/** Tokens for the time of `run`, with a model of 100 tokens a second. */
async function tokensOf(
  run: (silence: Silence, pass: (ms: number) => Promise<void>) => Promise<void>,
  tokensPerSecond = 100,
): Promise<number> {
  const clock = manualClock();
  const silence = createSilence(clock, tokensPerSecond);
  await run(silence, (ms) => clock.advance(ms));
  silence.over();
  await clock.advance(60_000);
  return silence.tokens();
}

describe("silence counts", () => {
  test("from the beginning to the first text, however short", async () => {
    expect(await tokensOf((_silence, pass) => pass(500))).toBe(50);
    const spoken = tokensOf(async (silence, pass) => {
      await pass(500);
      silence.spoke(4);
    });
    expect(await spoken).toBe(50);
  });

  test("in pauses of two seconds and more behind it, not in shorter ones", async () => {
    const spoken = tokensOf(async (silence, pass) => {
      silence.spoke(4);
      for (const ms of [1_999, 2_000, 100, 3_000]) {
        await pass(ms);
        silence.spoke(4);
      }
      await pass(1_000);
    });
    expect(await spoken).toBe(500);
  });

  test("as nothing without a figure", async () => {
    expect(await tokensOf((_silence, pass) => pass(60_000), 0)).toBe(0);
  });

  test("part of a token as one", async () => {
    expect(await tokensOf((_silence, pass) => pass(1))).toBe(1);
  });
});

describe("of time in which the caller took nothing", () => {
  /** The caller takes nothing for `heldMs`. Then it finds text in pieces of these lengths. */
  const held = (heldMs: number, pieces: readonly number[]) =>
    tokensOf(async (silence, pass) => {
      silence.spoke(4);
      silence.held();
      await pass(heldMs);
      silence.waits();
      for (const piece of pieces) silence.spoke(piece);
    });

  test("silence is what the text behind it does not fill", async () => {
    expect(await held(10_000, [])).toBe(1_000);
    expect(await held(10_000, [800, 800])).toBe(600);
    expect(await held(10_000, [80_000])).toBe(0);
    expect(await held(1_000, [])).toBe(0);
  });

  test("text that came once upstream was waited for fills nothing", async () => {
    const spoken = tokensOf(async (silence, pass) => {
      silence.held();
      await pass(10_000);
      silence.waits();
      for (let piece = 0; piece < 12; piece++) {
        await pass(10);
        silence.spoke(40);
      }
      // After a second, short wait, text does not count as made meanwhile.
      silence.held();
      await pass(10);
      silence.waits();
      silence.spoke(4_000);
    });
    // At most ten pieces had been made by then. For a hundredth of a second more, no text came before the first.
    expect(await spoken).toBeGreaterThanOrEqual(900);
    expect(await spoken).toBeLessThan(1_001);
  });

  test("text that is found when it leaves counts, too", async () => {
    const clock = manualClock();
    const silence = createSilence(clock, 100);
    silence.spoke(4);
    silence.held();
    await clock.advance(60_000);
    silence.over();
    silence.spoke(8_000);
    expect(silence.tokens()).toBe(4_000);
  });
});

test("a thought that was sealed and silent counts once, and not again what of it was shown", () => {
  const unseen = { sealedCharacters: 16_000, shownCharacters: 400, silentItems: 0 };
  expect(unseenTokens(unseen, 0)).toBe(2_900);
  expect(unseenTokens(unseen, 2_000)).toBe(2_900);
  expect(unseenTokens(unseen, 5_000)).toBe(4_900);
  expect(unseenTokens(undefined, 70)).toBe(70);
});
