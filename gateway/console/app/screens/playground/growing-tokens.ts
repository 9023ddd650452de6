// Reads a growing Markdown text piece by piece, so that a long answer does not slow the page down.

import type { Token } from "marked";
import { type Links, tokensOf } from "./markdown-tokens.ts";

/** Characters that are read at once. The most hostile ones take some tens of milliseconds. */
const maxRead = 8_192;
/** Characters of an answer that are formatted. */
const maxFormatted = 65_536;
/** Addresses with names that are known outside of the part that has them. */
const maxLinks = 200;

/**
 * The tokens of a text that grows. Each part of it is read once. Only the last block is read again when more comes, because later text
 * may change it.
 */
export class GrowingTokens {
  /** Parts that no later text changes. */
  readonly settled: (readonly Token[])[] = [];
  /** The last block. */
  open: readonly Token[] = [];
  /** The text behind them, which is shown as it came. */
  rest = "";
  #text = "";
  /** The place up to which the text is settled. */
  #done = 0;
  readonly #links: Links = {};
  /** Settled parts may refer to addresses that were named only later. */
  #isOutdated = false;

  /** Reads the text so far. When it is whole, links to addresses that it names only later are found too. */
  read(raw: string, isWhole: boolean): void {
    const text = raw.replaceAll(/\r\n?/g, "\n");
    if (!text.startsWith(this.#text)) {
      for (const name of Object.keys(this.#links)) delete this.#links[name];
      this.#beginAnew();
    }
    this.#readOn(text);
    if (!isWhole) return;
    this.#learn(this.open);
    if (!this.#isOutdated) return;
    this.#beginAnew();
    this.#readOn(text);
  }

  #beginAnew(): void {
    this.settled.length = 0;
    this.#done = 0;
    this.#isOutdated = false;
  }

  #learn(tokens: readonly Token[]): void {
    let count = Object.keys(this.#links).length;
    for (const token of tokens) {
      if (token.type !== "def" || this.#links[token.tag] || count >= maxLinks) continue;
      this.#links[token.tag] = { href: token.href, title: token.title };
      this.#isOutdated ||= this.settled.length > 0;
      count += 1;
    }
  }

  #readOn(text: string): void {
    this.#text = text;
    this.open = [];
    while (this.#done < Math.min(text.length, maxFormatted)) {
      const { end, isCode } = nextRead(text, this.#done);
      const tokens = tokensOf(text.slice(this.#done, end), this.#links);
      const count = settledCount(tokens);
      const isLast = end === text.length;
      // A block that is longer than a read is cut.
      const final = isLast || count > 0 ? tokens.slice(0, count) : tokens;
      this.#learn(final);
      if (final.length > 0) this.settled.push(final);
      this.#done += lengthOf(final);
      if (!isLast) continue;
      if (isCode || text.length <= maxFormatted) this.open = tokens.slice(count);
      break;
    }
    this.rest = this.open.length > 0 ? "" : text.slice(this.#done);
  }
}

/** The next part to read. It ends with a line, where one ends. Code in fences is one part, because its length costs nothing. */
function nextRead(text: string, from: number): { end: number; isCode: boolean } {
  const [, fence] = /^\n* {0,3}(`{3,}|~{3,})/.exec(text.slice(from, from + maxRead)) ?? [];
  if (fence) {
    const close = new RegExp(`\\n {0,3}${fence}${fence[0]}*[ \\t]*(?:\\n|$)`, "g");
    close.lastIndex = from;
    const isClosed = close.test(text);
    return { end: isClosed ? close.lastIndex : text.length, isCode: true };
  }
  if (text.length - from <= maxRead) return { end: text.length, isCode: false };
  const line = text.lastIndexOf("\n", from + maxRead - 1) + 1;
  return { end: line > from ? line : from + maxRead, isCode: false };
}

/**
 * The number of tokens before the last block. A last block without a whole line may turn out to belong to the block before, such as the
 * first digit of a list's next number.
 */
function settledCount(tokens: readonly Token[]): number {
  const lastBlock = (from: number) =>
    Math.max(
      0,
      tokens.findLastIndex(({ type }, place) => place <= from && type !== "space"),
    );
  const last = lastBlock(tokens.length - 1);
  const hasLine = tokens.slice(last).some(({ raw }) => raw.includes("\n"));
  return hasLine ? last : lastBlock(last - 1);
}

function lengthOf(tokens: readonly Token[]): number {
  return tokens.reduce((sum, { raw }) => sum + raw.length, 0);
}
