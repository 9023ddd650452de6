// Says what the rollup by upstream counts of an entry: requests, charges, costs and the parts of a request with prices of their
// own. `usage.ts` says it of the other rollup.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import {
  countOf,
  type Sums,
  slotName,
  textOf,
  type UsageSlot,
  type UsageStep,
  zeros,
} from "./usage.ts";

/** Sums of the parts of requests that have prices of their own. */
export const partNames = [
  // Of the input, tokens that were written to a cache, those of long entries included.
  "inputCacheWriteTokens",
  "inputCacheWriteLongTokens",
  "inputAudioTokens",
  "inputImageTokens",
  "outputAudioTokens",
  "outputImageTokens",
  // Calls of tools that upstreams carried out, of all families.
  "toolCalls",
] as const;

/** Sums of what upstreams cost. */
const costNames = [
  "requests",
  // In the wallet's unit. Refunds count below 0.
  "spent",
  // Requests whose cost at the upstream is known, and what these were charged, less refunds.
  "costedRequests",
  "costedSpent",
  // USD micros that the operator pays the upstreams for these.
  "upstreamCost",
] as const;

/** Names of the sums by upstream, in the order of their columns. */
export const servedNames = [...costNames, ...partNames] as const;
export type ServedSums = Sums<(typeof servedNames)[number]>;

/** The slot of a row of the rollup by upstream, within one wallet. */
export interface ServedSlot extends UsageSlot {
  /** The upstream that answered, as the record names it. Empty where none did, and where it is not recorded. */
  upstream: string;
}

/** The addition of one entry to its slot. */
export interface ServedStep {
  /** The entry's number. */
  n: number;
  slot: ServedSlot;
  sums: ServedSums;
}

/** Sums of nothing. */
export const noServed: ServedSums = zeros(servedNames);

/** The addition of an entry to the rollup by upstream, from its addition to the other one and its record. */
export function servedStepOf({ n, slot, sums }: UsageStep, record: JsonObject): ServedStep {
  const { requests, spent } = sums;
  const priced = isJsonObject(record.priced) ? record.priced : {};
  // A refund has no parts. It names the upstream of its charge, and whether its cost is known.
  const isCosted = priced.upstreamCostUsdMicros !== undefined || record.isCosted === true;
  const calls = isJsonObject(priced.toolCalls) ? Object.values(priced.toolCalls) : [];
  return {
    n,
    slot: { ...slot, upstream: textOf(record.upstream) },
    sums: {
      requests,
      spent,
      costedRequests: isCosted ? requests : 0n,
      costedSpent: isCosted ? spent : 0n,
      upstreamCost: countOf(priced.upstreamCostUsdMicros),
      inputCacheWriteTokens: countOf(priced.inputCacheWriteTokens),
      inputCacheWriteLongTokens: countOf(priced.inputCacheWriteLongTokens),
      inputAudioTokens: countOf(priced.inputAudioTokens),
      inputImageTokens: countOf(priced.inputImageTokens),
      outputAudioTokens: countOf(priced.outputAudioTokens),
      outputImageTokens: countOf(priced.outputImageTokens),
      toolCalls: calls.reduce((sum: bigint, one) => sum + countOf(one), 0n),
    },
  };
}

/** A slot's name, which is unique. No upstream's name has a colon. */
export function servedName({ upstream, ...slot }: ServedSlot): string {
  return `${upstream}:${slotName(slot)}`;
}
