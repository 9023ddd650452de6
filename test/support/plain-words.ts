import { readFileSync } from "node:fs";
import { join } from "node:path";
import { thisCheckout } from "./checkout.ts";

/** Words in a sentence of a page or of a comment, at most. */
export const mostWords = 30;

/** The sentences of a paragraph that is one line. */
export const sentencesOf = (block: string) => block.split(/(?<=[.!?]["*)]*) /);

/** The words of a sentence. A number, a dash or the mark of an item is no word. */
export const wordsOf = (sentence: string) =>
  sentence.split(" ").filter((word) => /\p{L}/u.test(word));

const glossary = readFileSync(join(thisCheckout, "docs/glossary.md"), "utf8");

/** The words in the last column of the glossary's tables. */
export const unwanted = [...glossary.matchAll(/^\|.*\|([^|]*)\|$/gm)].flatMap(([, cell = ""]) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word),
);

const unwantedWord = new RegExp(`(?<![\\w/.-])(?:${unwanted.join("|")})s?(?![\\w/-]|\\.\\w)`, "gi");

/** The unwanted words of a text. Whole words alone: parts of a path or of a name are none. */
export const unwantedIn = (text: string): string[] => text.match(unwantedWord) ?? [];
