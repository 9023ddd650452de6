import { blocksOf, commentsOf } from "./comments.ts";
import { mostWords, sentencesOf, unwantedIn, wordsOf } from "./plain-words.ts";

/** A sentence with such a beginning hides its subject. */
const opening = /^(?:What|Who|Whom|Whose|Whoever|Whatever|Whichever)\b(?!.*\?$)/;

/** Phrases that are riddles for a reader. */
const phrases = [
  /\bgo(es)? for\b/,
  /\ball the same\b/,
  /\beven so\b/,
  /\bof (ours|theirs)\b/,
  /\banew\b/,
  /\bso (many|much)\b/,
  /\b(is|are|was|were|be|been) told\b(?! apart)/,
  /\b(stands?|stood|standing) (in|for|at|there)\b/,
  /\bbut for\b/,
  /\balike\b/,
  /\bwhat of\b/,
  /\b(whom|whichever|whatever|someone|anybody|anyone|nobody)\b/,
  /\bno more\b(?!( \w+)? than)/,
];

const negations = /\b(no|not|never|nothing|none|neither|nor|without|cannot|\w+n't)\b/gi;
const mostNegations = 2;

const rules: Record<string, (sentence: string) => boolean> = {
  [`has more than ${mostWords} words`]: (sentence) => wordsOf(sentence).length > mostWords,
  "begins without a subject": (sentence) => opening.test(sentence),
  "has a phrase that is a riddle": (sentence) => phrases.some((one) => one.test(sentence)),
  [`has more than ${mostNegations} negations`]: (sentence) =>
    (sentence.match(negations) ?? []).length > mostNegations,
  "has a word that the glossary replaces": (sentence) => unwantedIn(sentence).length > 0,
};

/** The faults in the comments of a file, a line for each sentence and rule. */
export const faultsOf = (file: string): string[] =>
  commentsOf(file).flatMap((comment) =>
    blocksOf(comment)
      .flatMap(sentencesOf)
      .flatMap((sentence) =>
        Object.entries(rules)
          .filter(([, breaks]) => breaks(sentence))
          .map(([name]) => `${file}:${comment.line} ${name}: ${sentence}`),
      ),
  );
