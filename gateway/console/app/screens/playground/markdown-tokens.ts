// Splits Markdown into tokens. `markdown.tsx` shows them.

import { Lexer, type Token, Tokenizer, type Tokens, type TokensList } from "marked";

// A model can be made to write an answer that keeps the page busy, or breaks it. Beyond these bounds, text is shown as it came.

/** Quotes and lists in each other, and emphasis and links in each other. Each level is a call in a call, here and in the page. */
const maxLevels = 16;
/** Characters of a paragraph with emphasis and links. The time to find them grows with the square of its length. */
const maxInline = 4_096;
/** Characters of a quote. Where its lines go on without their mark, they are read again and again. */
const maxQuote = 8_192;
/** Cells of a table. Each row has as many as its header, so a short text could make millions. */
const maxCells = 5_000;

class BoundedTokenizer extends Tokenizer {
  #quotes = 0;
  #repeats = 0;

  override blockquote(src: string): Tokens.Blockquote | undefined {
    const [whole] = this.rules.block.blockquote.exec(src) ?? [];
    if (whole === undefined) return undefined;
    if (this.#quotes >= maxLevels || whole.length > maxQuote) {
      return { type: "blockquote", raw: whole, text: whole, tokens: asText(whole, []) };
    }
    this.#quotes += 1;
    const quote = super.blockquote(src);
    this.#quotes -= 1;
    return quote;
  }

  /** A label that is known already gets a name of its own, so that its line has a token. */
  override def(src: string): Tokens.Def | undefined {
    const def = super.def(src);
    const { links } = this.lexer.tokens;
    if (def && links[def.tag]) {
      this.#repeats += 1;
      def.tag += `\n${this.#repeats}`;
    }
    return def;
  }

  override table(src: string): Tokens.Table | undefined {
    const [whole = "", header = ""] = this.rules.block.table.exec(src) ?? [];
    const cells = header.split("|").length * whole.split("\n").length;
    return cells > maxCells ? undefined : super.table(src);
  }
}

class BoundedLexer extends Lexer {
  #level = 0;

  override blockTokens<T extends Token[]>(src: string, tokens = [] as unknown as T, cut = false) {
    return this.#within(src, tokens, () => super.blockTokens(src, tokens, cut));
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (src.length > maxInline) return asText(src, tokens);
    return this.#within(src, tokens, () => super.inlineTokens(src, tokens));
  }

  #within<T extends Token[]>(src: string, tokens: T, find: () => void): T {
    if (this.#level >= maxLevels) return asText(src, tokens);
    this.#level += 1;
    find();
    this.#level -= 1;
    return tokens;
  }
}

function asText<T extends Token[]>(text: string, tokens: T): T {
  tokens.push({ type: "text", raw: text, text });
  return tokens;
}

/** Addresses that a text names in lines of their own, by their labels. */
export type Links = TokensList["links"];

/** The tokens of Markdown (CommonMark and the tables of GitHub). They have all of the text. `links` are known before. */
export function tokensOf(text: string, links: Links = {}): Token[] {
  const lexer = new BoundedLexer({ gfm: true, tokenizer: new BoundedTokenizer() });
  lexer.tokens.links = { ...links };
  return lexer.lex(text);
}
