import { Lexer, type Token } from "marked";
import { describe, expect, test, vi } from "vitest";
import { GrowingTokens } from "./app/screens/playground/growing-tokens.ts";
import { tokensOf } from "./app/screens/playground/markdown-tokens.ts";

/** The parts of tokens that the page shows, without the place where a line break is counted. */
const shownOf = (tokens: readonly Token[]) =>
  JSON.stringify(
    tokens.filter(({ type }) => type !== "space" && type !== "def"),
    (name, value) => (name === "raw" || (name === "text" && /\n$/.test(value)) ? undefined : value),
  );

const allOf = ({ settled, open }: GrowingTokens) => [...settled.flat(), ...open];

const texts: [name: string, text: string][] = [
  ["paragraphs and headings", "# One\n\nTwo *three*\nfour\n\nFive\n===\n\nSix\n---\nSeven\n"],
  ["lists", "- a\n- b\n\n  c\n\n- d\n\n1. e\n2. f\n\n   g\n3. h\n\nAfter\n\n* i\n  - j\n\n    k\n"],
  ["a table", "Before\n\n| a | b |\n| - | -: |\n| 1 | 2 |\n| 3 |\n\nAfter | not\n"],
  [
    "code",
    "A\n\n```js\nlet a;\n\n# b\n```\n\n~~~~\n~~~\n\nc\n~~~~\nB\n\n    indented\n\n    more\n\nC\n",
  ],
  ["quotes", "> a\nlazy\n> - b\n>\n>   c\n\nd\n\n> e\n"],
  [
    "links by name",
    "See [one] and [two][b].\n\n[one]: https://one.test/\n[b]: https://two.test/\n\n[b]: x\n\nEnd [b]\n",
  ],
  ["returns", "a\r\n\r\n- b\r\n- c\r\rd\r\n"],
];

describe("the tokens of a growing text", () => {
  test.each(texts)("%s: are those of the whole text, however it grows", (_, text) => {
    const whole = shownOf(tokensOf(text));
    for (let step = 1; step <= text.length; step += 1) {
      const growing = new GrowingTokens();
      for (let end = step; end < text.length; end += step) growing.read(text.slice(0, end), false);
      growing.read(text, true);
      expect(shownOf(allOf(growing)), `steps of ${step}`).toBe(whole);
      expect(growing.rest).toBe("");
    }
  });

  test("a text that begins otherwise is read anew", () => {
    const growing = new GrowingTokens();
    growing.read("# One\n\nTwo\n\n", true);
    growing.read("Three\n", true);
    expect(shownOf(allOf(growing))).toBe(shownOf(tokensOf("Three\n")));
  });

  const long = 200_000;
  test.each([
    ["a list", "- a *b* [c](https://d.test/)\n"],
    [
      "lists in each other",
      Array.from({ length: 40 }, (_, i) => `${"  ".repeat(i)}- x\n`).join(""),
    ],
    ["one paragraph", "a *b **c "],
    ["a table", "|*1*|[2](https://a.test/)|\n|-|-|\n"],
    ["quotes", `${"> ".repeat(15)}a\nb\n`],
    ["names of links", "[a]: b\n"],
    ["code in a fence", "```\n", "let a;\n"],
  ])(
    "%s of 200,000 characters: each is read a bounded number of times",
    (_, first, more = first) => {
      const text = (first + more.repeat(long / more.length)).slice(0, long);
      const lex = vi.spyOn(Lexer.prototype, "lex");
      const growing = new GrowingTokens();
      const step = 500;
      for (let end = step; end < long; end += step) growing.read(text.slice(0, end), false);
      growing.read(text, true);
      const lengths = lex.mock.calls.map(([part]) => part.length);
      lex.mockRestore();
      const isCode = first.startsWith("```");
      if (!isCode) expect(Math.max(...lengths)).toBeLessThanOrEqual(8_192);
      expect(lengths.length).toBeLessThan(2 * (long / step));
      const kept = allOf(growing).reduce((sum, { raw }) => sum + raw.length, 0);
      expect(kept + growing.rest.length).toBe(long);
      expect(kept).toBeGreaterThan(50_000);
    },
  );
});
