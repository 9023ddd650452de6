// Shows an answer in Markdown, without letting it put code or addresses into the page.

import type { Token, Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { Code } from "../../kit/copy.tsx";
import { GrowingTokens } from "./growing-tokens.ts";

/** Schemes of links in an answer. Others are shown as text. */
const linkSchemes = ["http:", "https:", "mailto:"];
/**
 * An answer in Markdown. The page makes its own elements from the tokens, so HTML in an answer is text. An image becomes a link: the
 * answer would otherwise tell its server who reads it.
 */
export function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }): VNode {
  const tokens = useMemo(() => new GrowingTokens(), []);
  return useMemo(() => {
    tokens.read(text, !isGrowing);
    return (
      <div class="markdown">
        {tokens.settled.map((part, place) => (
          <Part key={place} tokens={part} />
        ))}
        <Part key="open" tokens={tokens.open} />
        {plainParts(tokens.rest).map((part, place) => (
          <div key={`rest ${place}`} class="prompt">
            {part}
          </div>
        ))}
      </div>
    );
  }, [text, isGrowing]);
}

/** Tokens that stay as they are, made into elements once. */
function Part({ tokens }: { tokens: readonly Token[] }): VNode {
  return useMemo(() => <>{blocks(tokens)}</>, [tokens]);
}

/** Characters of plain text in one element. The browser lays an element out as a whole, each time that it grows. */
const plainLength = 8_192;

/** Plain text in parts that end with a line, where one ends. */
function plainParts(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const line = text.lastIndexOf("\n", from + plainLength - 1) + 1;
    const isLong = text.length - from > plainLength;
    const end = isLong ? (line > from ? line : from + plainLength) : text.length;
    parts.push(text.slice(from, end));
    from = end;
  }
  return parts;
}

function blocks(tokens: readonly Token[]): ComponentChildren[] {
  return tokens.map((token, place) => <Block key={place} token={token} />);
}

/** A token of an unknown type is shown as it was written. */
function Block({ token }: { token: Token }): VNode | null {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p>{inlines(token.tokens)}</p>;
    case "heading":
      return <Heading {...(token as Tokens.Heading)} />;
    case "code":
      return <Code label={token.lang ? `Code: ${token.lang}` : "Code"} text={token.text} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "list":
      return <List {...(token as Tokens.List)} />;
    case "table":
      return <Table {...(token as Tokens.Table)} />;
    case "hr":
      return <hr />;
    case "checkbox":
      return <Done isDone={token.checked} />;
    case "text":
      return <>{token.tokens ? inlines(token.tokens) : entities(token.text)}</>;
    default:
      return <p>{token.raw}</p>;
  }
}

/** The page's own headings are above those of an answer. */
function Heading({ depth, tokens }: Tokens.Heading): VNode {
  const Tag = (["h3", "h4", "h5", "h6"] as const)[depth - 1] ?? "h6";
  return <Tag>{inlines(tokens)}</Tag>;
}

function List({ ordered, start, items }: Tokens.List): VNode {
  const lines = items.map((item, place) => <li key={place}>{blocks(item.tokens)}</li>);
  return ordered ? <ol start={Number(start)}>{lines}</ol> : <ul>{lines}</ul>;
}

function Done({ isDone }: { isDone: boolean }): VNode {
  return <span class="num">{isDone ? "☑ " : "☐ "}</span>;
}

function Table({ header, rows }: Tokens.Table): VNode {
  const classOf = ({ align }: Tokens.TableCell) => (align === "right" ? "numeric" : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach content that scrolls.
    <div class="wide-part" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map((cell, place) => (
              <th key={place} scope="col" class={classOf(cell)}>
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, place) => (
                <td key={place} class={classOf(cell)}>
                  {inlines(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inlines(tokens: readonly Token[] | undefined): ComponentChildren[] {
  return (tokens ?? []).map((token, place) => <Inline key={place} token={token} />);
}

function Inline({ token }: { token: Token }): VNode {
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens)}</strong>;
    case "em":
      return <em>{inlines(token.tokens)}</em>;
    case "del":
      return <del>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return <Done isDone={token.checked} />;
    case "link":
      return <Link {...(token as Tokens.Link)}>{inlines(token.tokens)}</Link>;
    case "image":
      return <Link {...(token as Tokens.Image)}>Image: {token.text || token.href}</Link>;
    case "html":
      return isBreak.test(token.raw) ? <br /> : <>{token.raw}</>;
    case "text":
      return <>{token.tokens ? inlines(token.tokens) : entities(token.text)}</>;
    default:
      return <>{"text" in token ? entities(token.text) : token.raw}</>;
  }
}

/** Models write it for a new line in a cell of a table. */
const isBreak = /^<br\s*\/?>$/i;

function Link({ href, children }: { href: string; children: ComponentChildren }): VNode {
  const address = URL.parse(href);
  if (!address || !linkSchemes.includes(address.protocol)) return <>{children}</>;
  return (
    <a href={address.href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** The text with characters in place of entities such as `&lt;`. */
function entities(text: string): string {
  if (!text.includes("&")) return text;
  const html = text.replace(/&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,30});)/gi, "&amp;");
  // A parser drops blanks at the beginning of a page.
  const page = `|${html.replaceAll("<", "&lt;")}`;
  return new DOMParser().parseFromString(page, "text/html").body.textContent.slice(1);
}
