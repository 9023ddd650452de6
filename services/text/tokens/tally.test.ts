import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { noMedia } from "../request/media.ts";
import { CountError, createTokenCounter, slicesOf, type TokenCounter } from "./count.ts";
import { createTally } from "./tally.ts";

const counter = createTokenCounter(createWorkshop());
afterAll(() => counter[Symbol.asyncDispose]());

const request = {
  body: { input: "one two three" },
  media: noMedia,
  items: 1,
  mediaTokens: { estimate: 0, held: 0, most: 0, least: 0 },
  toolTokens: 0,
  guessedInput: 50,
};

/** A counter that fails while `isAway` is true. */
function failing() {
  const errors: unknown[] = [];
  const failures: TokenCounter & { isAway: boolean; asked: string[] } = {
    isAway: true,
    asked: [],
    async count(texts, limit) {
      failures.asked.push(texts.join(""));
      if (failures.isAway) throw new CountError("away");
      return counter.count(texts, limit);
    },
    async measure(texts) {
      failures.asked.push(texts.join(""));
      if (failures.isAway) throw new CountError("away");
      return counter.measure(texts);
    },
  };
  const tally = createTally(request, failures, (error) => errors.push(error));
  return { failures, errors, tally };
}

describe("a tally", () => {
  test("counts each text once, and what came between two counts as the tokenizer does", async () => {
    const parts = [
      "The sea is wide and blue. ".repeat(400),
      "漢字仮名交じり文。".repeat(700),
      "🌊🦊👩‍🚀 é̀à̂ṏ".repeat(600),
      "end",
    ];
    const { failures, tally } = failing();
    failures.isAway = false;
    let tokens = 0;
    for (const part of parts) {
      // In pieces like those of deltas, with halves of characters among them.
      for (let at = 0; at < part.length; at += 3) tally.add(part.slice(at, at + 3));
      expect(tally.uncounted).toBe(part.length);
      for (const slice of slicesOf(part)) tokens += countTokens(slice);
      expect(await tally.output()).toBe(tokens);
      expect(tally.uncounted).toBe(0);
    }
    expect(failures.asked).toEqual(parts);
    expect(await tally.output()).toBe(tokens);
  });

  test("counts what two ask for at once one after the other", async () => {
    const { failures, tally } = failing();
    failures.isAway = false;
    tally.add("one two three");
    const first = tally.output();
    tally.add(" four");
    const second = tally.output();
    tally.add(" five");
    expect(await first).toBeLessThanOrEqual(await second);
    expect(await tally.output()).toBe(5);
    expect(failures.asked.join("")).toBe("one two three four five");
  });

  test("counts the input once", async () => {
    const { failures, tally } = failing();
    failures.isAway = false;
    const [one, two] = await Promise.all([tally.input(), tally.input()]);
    expect([one, two, await tally.input()]).toEqual([7, 7, 7]);
    expect(failures.asked).toHaveLength(1);
  });
});

describe("what cannot be counted", () => {
  test("is guessed, and counted where that is asked for later", async () => {
    const { failures, errors, tally } = failing();
    tally.add("one two three");
    expect([await tally.input(), await tally.output()]).toEqual([50, 4]);
    tally.add(" four");
    // A counted text is not sent to the counter again. A failure is no reason to try again with every delta.
    expect(tally.uncounted).toBe(5);
    expect(tally.guess()).toEqual([50, 5]);
    expect(errors).toHaveLength(2);
    failures.isAway = false;
    expect([await tally.input(), await tally.output()]).toEqual([7, 4]);
    expect(tally.guess()).toEqual([7, 4]);
    expect(errors).toHaveLength(2);
  });

  test("yet is guessed without waiting", async () => {
    const never: TokenCounter = {
      count: () => new Promise(() => {}),
      measure: () => new Promise(() => {}),
    };
    const tally = createTally(request, never, () => {});
    tally.add("one two ");
    void tally.input();
    void tally.output();
    tally.add("three");
    await Promise.resolve();
    expect(tally.guess()).toEqual([50, 4]);
  });
});
