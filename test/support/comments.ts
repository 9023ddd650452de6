import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "rolldown/utils";
import { thisCheckout } from "./checkout.ts";

/** A comment of a source file, without its marks. Lines of `//` that follow each other are one comment. */
export interface Comment {
  line: number;
  text: string;
}

interface Found {
  isLine: boolean;
  start: number;
  end: number;
  value: string;
}

/** The comments of a file: TypeScript, JavaScript or proto. */
export function commentsOf(file: string): Comment[] {
  const source = readFileSync(join(thisCheckout, file), "utf8");
  const found = file.endsWith(".proto") ? inProto(source) : inScript(file, source);
  const comments: (Found & Comment)[] = [];
  for (const one of found) {
    const last = comments.at(-1);
    const between = last && source.slice(last.end, one.start);
    if (last?.isLine && one.isLine && between && /^\n[ \t]*$/.test(between)) {
      last.text += `\n${one.value}`;
      last.end = one.end;
    } else {
      const line = source.slice(0, one.start).split("\n").length;
      comments.push({ ...one, line, text: one.value.replaceAll(/^[ \t]*\*+ ?/gm, "") });
    }
  }
  return comments;
}

function inScript(file: string, source: string): Found[] {
  return parseSync(file, source).comments.map(({ type, ...rest }) => ({
    ...rest,
    isLine: type === "Line",
  }));
}

function inProto(source: string): Found[] {
  return [...source.matchAll(/"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g)]
    .filter(([text]) => text.startsWith("/"))
    .map(({ 0: text, index }) => ({
      isLine: text.startsWith("//"),
      start: index,
      end: index + text.length,
      value: text.startsWith("//") ? text.slice(2) : text.slice(2, -2),
    }));
}

/** The paragraphs and items of a comment, each as one line. `code` becomes the one word CODE. */
export function blocksOf({ text }: Comment): string[] {
  return text
    .replaceAll(/^ *```.*?^ *```$/gms, "")
    .replaceAll(/`[^`]+`|\{@link [^}]+\}|https?:\S+/g, "CODE")
    .replaceAll(/^ *(biome-ignore|@ts-expect-error)\b/gm, "CODE")
    .split(/\n(?=\s*\n|\s*(?:[*-]|\d+\.) |\s*@)/)
    .map((block) => block.replaceAll(/\s+/g, " ").trim());
}
