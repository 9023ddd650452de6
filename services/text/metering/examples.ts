// Prices typical requests of a model by the code that charges. `genmesh catalog check --example` shows them, so that operators
// notice a wrong price.

import type { ChatSpec, Model } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { soundUnitMs } from "../../upstreams/text/port.ts";
import { chargeNotes } from "./charge-notes.ts";
import type { HeldContent, PriceList, TokenPrices } from "./price-list.ts";
import {
  type ChargedTokens,
  chargeOf,
  holdAmountOf,
  priceOf,
  priceOfEmbedding,
  priceOfTranscription,
  type TextPrice,
} from "./pricing.ts";

/** A request of a model, with what it costs by the code that charges. Amounts are in USD micros. */
export interface TextExample {
  /** In words, such as "1,000 in, 500 out". */
  request: string;
  tokens: ChargedTokens;
  /** The hold of a request whose bounds are just these tokens and calls. */
  hold: bigint;
  charge: bigint;
  /** The cost at the upstream, by the catalog. Undefined: it names no such prices. */
  upstreamCost: bigint | undefined;
}

/** Requests of a model of text, embeddings or transcriptions: one for each part of its price. Empty for other kinds. */
export function textExamples({ spec }: Model): TextExample[] {
  switch (spec.case) {
    case "chat":
      return chatExamples(spec.value);
    case "embedding": {
      const input = Math.min(usualInput, Number(spec.value.maxInputTokens));
      const price = priceOfEmbedding(spec.value);
      return [exampleOf(price, tokens(input, 0), `${countOf(input)} in`)];
    }
    case "transcription":
      return [
        exampleOf(
          priceOfTranscription(spec.value),
          tokens(minuteMs / soundUnitMs, 0),
          "1 minute of audio",
        ),
      ];
    default:
      return [];
  }
}

const [usualInput, usualOutput, largeInput] = [1_000, 500, 10_000];
const minuteMs = 60_000;

/** An example before its price. `long`: its request asks for long entries in the cache. */
interface Case {
  tokens: ChargedTokens;
  words: string;
  long?: true;
}

function chatExamples(spec: ChatSpec): TextExample[] {
  const price = priceOf(spec);
  const within = (wanted: number, most: bigint) => Math.min(wanted, Number(most));
  const output = within(usualOutput, spec.maxOutputTokens);
  const usual = tokens(within(usualInput, spec.maxInputTokens), output);
  const large = tokens(within(largeInput, spec.maxInputTokens), output);
  const most = Number(spec.maxInputTokens);
  const cases: Case[] = [{ tokens: usual, words: wordsOf(usual) }, ...cacheCases(price, large)];
  const { list } = price;
  if (list) {
    cases.push(...mediaCases(list, large));
    for (const { aboveInputTokens } of list.longInput ?? []) {
      const input = Number(aboveInputTokens) + 1;
      if (input > most) continue;
      const long = tokens(input, output);
      cases.push({ tokens: long, words: wordsOf(long) });
    }
    for (const servedTier of Object.keys(list.servedTiers ?? {})) {
      const words = `${wordsOf(usual)}, answered as ${servedTier}`;
      cases.push({ tokens: { ...usual, servedTier }, words });
    }
    for (const family of Object.keys(list.toolCalls ?? {})) {
      const words = `${wordsOf(usual)}, 1 call of ${family}`;
      cases.push({ tokens: { ...usual, toolCalls: { [family]: 1 } }, words });
    }
  }
  return cases.map(({ tokens, words, long }) =>
    exampleOf(long ? { ...price, asksLongCache: true } : price, tokens, words),
  );
}

/** Of the input, four fifths that are read from a cache, or written to one. */
function cacheCases({ input, cachedInput, list }: TextPrice, large: ChargedTokens): Case[] {
  const share = Math.floor((large.input * 4) / 5);
  const of = (words: string) => `${wordsOf(large)}, ${countOf(share)} of the input ${words}`;
  const cases: Case[] = [];
  if ((list?.cachedInput ?? cachedInput) !== input) {
    const tokens = { ...large, cachedInput: share };
    cases.push({ tokens, words: of("read from a cache") });
  }
  if (list?.cacheWrite !== undefined) {
    const tokens = { ...large, cacheWrite: share };
    cases.push({ tokens, words: of("written to a cache") });
  }
  if (list?.cacheWriteLong !== undefined) {
    const tokens = { ...large, cacheWriteLong: share };
    cases.push({ tokens, words: of("written to a cache for long"), long: true });
  }
  return cases;
}

const mediaClasses = [
  ["audioInput", "input", "audio"],
  ["imageInput", "input", "images"],
  ["audioOutput", "output", "audio"],
  ["imageOutput", "output", "images"],
] as const satisfies readonly (readonly [keyof TokenPrices, "input" | "output", string])[];

/** Of the input or the output, four fifths that are audio or images. */
function mediaCases(list: PriceList, large: ChargedTokens): Case[] {
  return mediaClasses.flatMap(([name, side, kind]): Case[] => {
    if (list[name] === undefined) return [];
    const share = Math.floor((large[side] * 4) / 5);
    const words = `${wordsOf(large)}, ${countOf(share)} of the ${side} ${kind}`;
    return [{ tokens: { ...large, [name]: share }, words }];
  });
}

function exampleOf(price: TextPrice, tokens: ChargedTokens, request: string): TextExample {
  const { audioInput, imageInput, toolCalls } = tokens;
  const held: HeldContent = {
    ...(audioInput && { audioInput }),
    ...(imageInput && { imageInput }),
    ...(toolCalls && { toolCalls }),
    audioOutput: tokens.audioOutput !== undefined,
    imageOutput: tokens.imageOutput !== undefined,
  };
  const hold = holdAmountOf(price, { input: tokens.input, output: tokens.output }, held);
  const charge = chargeOf(price, tokens, hold);
  const { upstreamCost } = chargeNotes(price, tokens, undefined);
  return { request, tokens, hold, charge, upstreamCost };
}

function tokens(input: number, output: number): ChargedTokens {
  return { input, cachedInput: 0, output };
}

function wordsOf({ input, output }: ChargedTokens): string {
  return `${countOf(input)} in, ${countOf(output)} out`;
}

function countOf(tokens: number): string {
  return tokens.toLocaleString("en-US");
}
