// Finds the language in which the text model answers.

import type { Language } from "./phrases.ts";

/** Names by which instructions ask for a language. */
const names: readonly [Language, RegExp][] = [
  ["de", /\b(german|deutsch)\b/i],
  ["fr", /\b(french|français)(?=\W|$)/i],
  ["es", /\b(spanish|español)(?=\W|$)/i],
  ["en", /\benglish\b/i],
];

/** Words that a language always needs and the others do not have. */
const commonWords: readonly [Language, ReadonlySet<string>][] = [
  [
    "de",
    new Set("der das und ist nicht ein eine ich du wie mit für auf bitte warum wer".split(" ")),
  ],
  [
    "fr",
    new Set("le les et est une des je tu vous pas pour dans quel pourquoi qui avec".split(" ")),
  ],
  ["es", new Set("el los las y es una por qué cómo para con yo tú como dónde hola".split(" "))],
  ["en", new Set("the and is of to you what how in it for are this that please".split(" "))],
];

/** Enough of a text to know its language. */
const looked = 500;

/** The language of the answer: the one that the instructions or the user name, otherwise the one that the user writes. */
export function languageOf(instructions: string, said: string): Language {
  for (const text of [said.slice(0, looked), instructions]) {
    const named = names.find(([, name]) => name.test(text));
    if (named) return named[0];
  }
  const words =
    said
      .slice(0, looked)
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  const scores = commonWords.map(([language, common]) => ({
    language,
    score: words.filter((word) => common.has(word)).length,
  }));
  const best = scores.reduce((a, b) => (b.score >= a.score ? b : a));
  return best.score === 0 ? "en" : best.language;
}
