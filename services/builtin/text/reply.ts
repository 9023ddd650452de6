// Words the text that the text model answers.

import type { Random } from "../seed.ts";
import { type Conversation, heard } from "./conversation.ts";
import { languageOf } from "./language.ts";
import type { Look } from "./look.ts";
import { type Phrases, phrases } from "./phrases.ts";

/** Characters of the user's words that are quoted back. */
const topicChars = 80;
/** Characters of a tool's result that are repeated. */
const resultChars = 400;
/** Images that are mentioned one by one. The API's contract allows at most 20. */
const maxImages = 20;

/** The answer in text. The same conversation gives the same answer. */
export function replyTo(
  talk: Conversation,
  random: Random,
  { wantsSearch }: { wantsSearch: boolean },
): string {
  const said = heard(talk);
  const dictated = dictation(said);
  const isBare = talk.results.length === 0 && talk.looks.length === 0;
  if (dictated && isBare) return dictated;
  const say = phrases[languageOf(talk.instructions, said)];
  const sentences = [
    ...(talk.results.length > 0 ? results(talk, say) : opening(said, say, random)),
    ...talk.looks.slice(0, maxImages).map((look, at) => sight(look, at + 1, say)),
    ...memories(talk, say),
    ...(wantsSearch ? [say.offline] : []),
    random.pick(say.closing),
  ];
  return sentences.join(" ").replace(/\n +/g, "\n");
}

/** The first words of a text, for quoting and remembering. */
export function topicOf(text: string): string {
  const line = text
    .slice(0, topicChars * 5)
    .replace(/\s+/g, " ")
    .trim();
  if (line.length <= topicChars) return line;
  const cut = line.slice(0, topicChars);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), topicChars / 2)).trimEnd()}…`;
}

/** The text that "say …" and the like ask for. Undefined for any other text. */
function dictation(said: string): string | undefined {
  const verbs = /^(?:please\s+)?(?:say|echo|repeat(?: after me)?|(?:reply|respond|answer) with)\b/i;
  const verb = verbs.exec(said.trim())?.[0];
  if (!verb) return undefined;
  const rest = said.trim().slice(verb.length);
  const asked = rest.replace(/^(?:\s+(?:exactly|only|just|the (?:single )?words?))*\s*:?\s*/i, "");
  const quoted = /^(["'“«„])(.+)["'”»“]\s*\.?$/s.exec(asked)?.[2];
  return (quoted ?? asked).trim() || undefined;
}

function opening(said: string, say: Phrases, random: Random): string[] {
  const words = said.match(/[\p{L}\p{N}'’-]+/gu) ?? [];
  if (words.length === 0) return [say.empty];
  const longest = words.reduce((a, b) => (b.length > a.length ? b : a));
  const facts = {
    topic: topicOf(said),
    words: `${words.length}`,
    longest,
    letters: `${[...longest].length}`,
    reversed: [...longest].reverse().join("").toLowerCase(),
  };
  const isQuestion = /\?\s*$/.test(said.trim());
  const sum = sumIn(said);
  const remark = isQuestion ? say.question : say.statement;
  return [
    fill(random.pick(say.opening), facts),
    sum ? fill(say.sum, { sum }) : fill(random.pick(remark), facts),
    fill(random.pick(say.wordplay), facts),
  ];
}

/** A small sum in the text, with its result. */
function sumIn(said: string): string | undefined {
  const match = /(-?\d{1,6})\s*([-+*/×x])\s*(-?\d{1,6})(?![\d.])/.exec(said);
  if (!match) return undefined;
  const [, left = "", sign = "", right = ""] = match;
  const a = Number(left);
  const b = Number(right);
  if (sign === "/" && (b === 0 || a % b !== 0)) return undefined;
  const value = sign === "+" ? a + b : sign === "-" ? a - b : sign === "/" ? a / b : a * b;
  const shown = sign === "*" || sign === "x" ? "×" : sign;
  return `${a} ${shown} ${b} = ${value}`;
}

function results(talk: Conversation, say: Phrases): string[] {
  return talk.results.map(({ name, output }) => {
    const short = output.length > resultChars ? `${output.slice(0, resultChars)}…` : output;
    return `${fill(say.result, { name, output: short })}\n\n`;
  });
}

function sight(look: Look, number: number, say: Phrases): string {
  const phrase = look.isRemote ? say.imageRemote : look.width > 0 ? say.image : say.imageUnknown;
  const { type, width, height } = look;
  return fill(phrase, {
    number: `${number}`,
    type,
    width: `${width}`,
    height: `${height}`,
  });
}

function memories(talk: Conversation, say: Phrases): string[] {
  const turn = talk.said.length + talk.recalledTurns;
  const topics = talk.recalled.map((topic) => `“${topic}”`).join(", ");
  const isContinued = talk.said.length > 1 && talk.results.length === 0;
  return [
    ...(topics ? [fill(say.recalled, { topics })] : []),
    ...(isContinued ? [fill(say.turns, { turn: `${turn}`, first: topicOf(heard(talk, 0)) })] : []),
  ];
}

function fill(phrase: string, facts: Record<string, string>): string {
  return phrase.replace(/\{(\w+)\}/g, (whole, name: string) => facts[name] ?? whole);
}
