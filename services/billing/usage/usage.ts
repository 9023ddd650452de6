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

/** The sums, in whole numbers. */
export interface UsageSums {
  /** Requests and jobs that ended, including those that cost nothing. */
  requests: bigint;
  inputTokens: bigint;
  cachedInputTokens: bigint;
  outputTokens: bigint;
  reasoningTokens: bigint;
  images: bigint;
  /** Milliseconds of video, music and speech. */
  mediaMs: bigint;
  characters: bigint;
  /** In the wallet's unit. Refunds count below 0. */
  spent: bigint;
}

/** Names of the sums, in the order of their columns. */
export const sumNames = [
  "requests",
  "inputTokens",
  "cachedInputTokens",
  "outputTokens",
  "reasoningTokens",
  "images",
  "mediaMs",
  "characters",
  "spent",
] as const satisfies readonly (keyof UsageSums)[];

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
}

/** The addition of one entry to all charges of a key. */
export interface KeyStep {
  /** The entry's number. */
  n: number;
  keyId: string;
  /** In the wallet's unit. Refunds count below 0. */
  spent: bigint;
}

/** The sums of some entries. */
export interface CountedEntries {
  cursor: UsageCursor;
  lines: Line[];
  steps: UsageStep[];
  keySteps: KeyStep[];
}

/** Before the first entry. */
export const uncounted: UsageCursor = { n: 0, balance: 0n, keysN: 0 };

const hourMs = 3_600_000;

/**
 *
 * Counts entries in their order, up to number `upTo`. They are those that follow the cursor. Where all of them are in the rollup, they
 * are those that the totals of keys lack. No entry is counted twice. Totals that lack earlier entries do not get these.
 */
export function countEntries(
  wallet: WalletRef,
  cursor: UsageCursor,
  entries: readonly Entry[],
  upTo: number,
): CountedEntries {
  let { balance } = cursor;
  const lines: Line[] = [];
  const steps: UsageStep[] = [];
  const keySteps: KeyStep[] = [];
  const areKeysCounted = upTo <= cursor.n || cursor.keysN >= cursor.n;
  for (const entry of entries) {
    const { n } = entry;
    const keyStep = keyStepOf(entry);
    if (areKeysCounted && n > cursor.keysN && keyStep) keySteps.push(keyStep);
    if (n <= cursor.n) continue;
    const amount = entry.freeDelta + entry.heldDelta;
    balance += amount;
    const record = recordOf(entry);
    const kind = lineKindOf(entry, wallet.unit, record);
    if (!kind) continue;
    const model = textOf(record.model);
    lines.push({
      wallet,
      n,
      at: entry.at,
      kind,
      keyId: entry.keyId,
      model,
      status: kind === "refund" ? "" : textOf(record.status),
      amount,
      balance,
      publicId: textOf(record.answerId) || entry.holdId,
      requestId: textOf(record.requestId),
      record: entry.record,
    });
    const step = stepOf(entry, wallet.unit);
    if (step) steps.push(step);
  }
  const keysN = areKeysCounted ? Math.max(cursor.keysN, upTo) : cursor.keysN;
  return { cursor: { n: Math.max(cursor.n, upTo), balance, keysN }, lines, steps, keySteps };
}

/** The addition of an entry to the rollup. Undefined where there is none. */
export function stepOf(entry: Entry, unit: Unit): UsageStep | undefined {
  const record = recordOf(entry);
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
export const noSums: UsageSums = {
  requests: 0n,
  inputTokens: 0n,
  cachedInputTokens: 0n,
  outputTokens: 0n,
  reasoningTokens: 0n,
  images: 0n,
  mediaMs: 0n,
  characters: 0n,
  spent: 0n,
};

/** Both together. */
export function addSums(a: UsageSums, b: UsageSums): UsageSums {
  return {
    requests: a.requests + b.requests,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    images: a.images + b.images,
    mediaMs: a.mediaMs + b.mediaMs,
    characters: a.characters + b.characters,
    spent: a.spent + b.spent,
  };
}

/** A slot's name, which is unique. A model's id comes last, because it is the one part that may have any letter. */
export function slotName({ hour, keyId, kind, model }: UsageSlot): string {
  return `${hour}:${keyId}:${kind}:${model}`;
}

/** Steps by slot. */
export function bySlot(steps: readonly UsageStep[]): Map<string, UsageStep[]> {
  return Map.groupBy(steps, ({ slot }) => slotName(slot));
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
 *
 * The kind of line of an entry. Undefined for an entry that is no line: a hold that was opened or moved. A hold whose work never began,
 * or whose owner was gone, is no line if it ended uncharged. The same is true for an uncharged one that an earlier release left without
 * a record.
 */
function lineKindOf(entry: Entry, unit: Unit, record: JsonObject): LineKind | undefined {
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

function recordOf({ record }: Pick<Entry, "record">): JsonObject {
  if (record === "") return {};
  const told: unknown = JSON.parse(record);
  return isJsonObject(told) ? told : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function countOf(value: unknown): bigint {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? BigInt(value) : 0n;
}
