// Says what usage counts of an entry: to which hour, key, kind and model, and whether it is a line of the account's history. Both
// databases and the audit go by it. `served.ts` says it of the rollup by upstream.

import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { countedAt, type Entry, type Unit, type WalletRef } from "../ledger/wallet.ts";

/** The work that was paid for. "job" is one that an earlier release charged, which did not record the kind of output. */
export type UsageKind = "text" | "speech" | "image" | "video" | "music" | "job";
/** All of them. */
export const usageKinds: readonly UsageKind[] = [
  "text",
  "speech",
  "image",
  "video",
  "music",
  "job",
];
/** The kind of a line of an account's journals. */
export type LineKind = UsageKind | "grant" | "refund";

/** Names of the sums, in the order of their columns. */
export const sumNames = [
  // Requests and jobs that ended, including those that cost nothing.
  "requests",
  "inputTokens",
  "cachedInputTokens",
  "outputTokens",
  "reasoningTokens",
  "images",
  // Milliseconds of video, music and speech.
  "mediaMs",
  "characters",
  // In the wallet's unit. Refunds count below 0.
  "spent",
] as const;

/** The sums, in whole numbers. */
export type UsageSums = Sums<(typeof sumNames)[number]>;
/** Whole numbers by their names. */
export type Sums<Name extends string> = { [name in Name]: bigint };

/** The slot of a row of the rollup, within one wallet. */
export interface UsageSlot {
  /** Seconds since the epoch at the beginning of its hour (UTC). */
  hour: number;
  keyId: string;
  kind: UsageKind;
  /** Empty where an earlier release charged it. */
  model: string;
}

/** The addition of one entry to its slot. */
export interface UsageStep {
  /** The entry's number. */
  n: number;
  slot: UsageSlot;
  sums: UsageSums;
}

/** A line of an account's journals: a request or job that ended, a grant, or a refund. Holds that were opened or moved are no lines. */
export interface Line {
  wallet: WalletRef;
  /** The entry's number and time, in ms since the epoch. */
  n: number;
  at: number;
  kind: LineKind;
  keyId: string;
  model: string;
  /** How a request ended. Empty where an earlier release does not record it, and for grants and refunds. */
  status: string;
  /** Change of the available balance of the wallet. */
  amount: bigint;
  /** The available balance after it. */
  balance: bigint;
  /** The id that its caller knows. Empty for grants. */
  publicId: string;
  /** Id of the caller's HTTP request. Empty where it is unknown. */
  requestId: string;
  /** See {@link Entry}. */
  record: string;
}

/** How far a wallet's journal is added up. */
export interface UsageCursor {
  /** Number of the last entry that is in the rollup and the lines. 0 before the first. */
  n: number;
  /** The available balance of the wallet after it. */
  balance: bigint;
  /**
   * Number of the last entry that is in the totals of keys. It is below {@link n} while a release without totals counts beside this
   * one.
   */
  keysN: number;
  /** The same for the rollup by upstream. */
  servedN: number;
}

/** The addition of one entry to all charges of a key. */
export interface KeyStep {
  /** The entry's number. */
  n: number;
  keyId: string;
  /** In the wallet's unit. Refunds count below 0. */
  spent: bigint;
}

/** Before the first entry. */
export const uncounted: UsageCursor = { n: 0, balance: 0n, keysN: 0, servedN: 0 };

const hourMs = 3_600_000;

/** The addition of an entry to the rollup. Undefined where there is none. */
export function stepOf(
  entry: Entry,
  unit: Unit,
  record: JsonObject = recordOf(entry),
): UsageStep | undefined {
  const line = lineKindOf(entry, unit, record);
  if (!line || line === "grant") return undefined;
  const { n, keyId, spentDelta: spent } = entry;
  const slot: UsageSlot = {
    // A refund lowers the hour of its charge. So no hour is below 0, and a month is the sum of its hours.
    hour: Math.floor(countedAt(entry) / hourMs) * 3_600,
    keyId,
    kind: usageKindOf(entry, unit, record),
    model: textOf(record.model),
  };
  if (line === "refund") return { n, slot, sums: { ...noSums, spent } };
  return {
    n,
    slot,
    sums: {
      requests: 1n,
      inputTokens: countOf(record.inputTokens),
      cachedInputTokens: countOf(record.cachedInputTokens),
      outputTokens: countOf(record.outputTokens),
      reasoningTokens: countOf(record.reasoningTokens),
      images: countOf(record.images),
      mediaMs: countOf(record.mediaMs),
      characters: countOf(record.characters),
      spent,
    },
  };
}

/** The addition of an entry to the total of its key. Undefined where there is none. */
export function keyStepOf({ n, keyId, spentDelta: spent }: Entry): KeyStep | undefined {
  return keyId === "" || spent === 0n ? undefined : { n, keyId, spent };
}

/** The kind of work whose charge a refund gave back. */
export function refundedKind(line: Line): UsageKind {
  return usageKindOf({ holdKind: "" }, line.wallet.unit, recordOf(line));
}

/** Sums of nothing. */
export const noSums: UsageSums = zeros(sumNames);

/** Sums of these names, all of them 0. */
export function zeros<Name extends string>(names: readonly Name[]): Sums<Name> {
  return Object.fromEntries(names.map((name) => [name, 0n])) as Sums<Name>;
}

/** Both together. */
export function addSums<Name extends string>(a: Sums<Name>, b: Sums<Name>): Sums<Name> {
  const sums = { ...a };
  for (const name in b) sums[name] += b[name];
  return sums;
}

/** A slot's name, which is unique. A model's id comes last, because it is the one part that may have any letter. */
export function slotName({ hour, keyId, kind, model }: UsageSlot): string {
  return `${hour}:${keyId}:${kind}:${model}`;
}

/** Steps by the names of their slots. */
export function bySlot<Slot, Step extends { slot: Slot }>(
  steps: readonly Step[],
  nameOf: (slot: Slot) => string,
): Map<string, Step[]> {
  return Map.groupBy(steps, ({ slot }) => nameOf(slot));
}

/** Steps added up by key. */
export function byKey(steps: readonly KeyStep[]): Map<string, Pick<KeyStep, "n" | "spent">> {
  const keys = new Map<string, Pick<KeyStep, "n" | "spent">>();
  for (const { n, keyId, spent } of steps) {
    keys.set(keyId, { n, spent: (keys.get(keyId)?.spent ?? 0n) + spent });
  }
  return keys;
}

/**
 * The kind of line of an entry. Undefined for an entry that is no line: a hold that was opened or moved. A hold whose work never began,
 * or whose owner was gone, is no line if it ended uncharged. The same is true for an uncharged one that an earlier release left without
 * a record.
 */
export function lineKindOf(entry: Entry, unit: Unit, record: JsonObject): LineKind | undefined {
  if (entry.kind === "grant") return "grant";
  if (entry.spentDelta < 0n) return "refund";
  const isEnd = entry.kind === "settle" || entry.kind === "release" || entry.kind === "draw";
  if (!isEnd || (entry.record === "" && entry.spentDelta === 0n)) return undefined;
  return usageKindOf(entry, unit, record);
}

const kindsOfOperations: Readonly<Record<string, UsageKind>> = {
  responses: "text",
  compact: "text",
  chat: "text",
  speech: "speech",
  image: "image",
  video: "video",
  music: "music",
};

function usageKindOf(
  { holdKind }: Pick<Entry, "holdKind">,
  unit: Unit,
  { operation }: JsonObject,
): UsageKind {
  const told = typeof operation === "string" ? operation : "";
  const known = Object.hasOwn(kindsOfOperations, told) ? kindsOfOperations[told] : undefined;
  return known ?? (holdKind || (unit === "credits" ? "job" : "text"));
}

/** An entry's record of its request or of its charge. Empty where there is none. */
export function recordOf({ record }: Pick<Entry, "record">): JsonObject {
  if (record === "") return {};
  const told: unknown = JSON.parse(record);
  return isJsonObject(told) ? told : {};
}

/** A text in a record. Empty where there is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A count in a record. 0 where there is none. */
export function countOf(value: unknown): bigint {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? BigInt(value) : 0n;
}
