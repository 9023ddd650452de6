import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import { HoldKind, type Line, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { billingWorld } from "./ledger.world.ts";

/** The account of these tests. */
export const accountId = "acct_a";
const hourMs = 3_600_000;

/** Billing for a test of usage. */
export type World = Awaited<ReturnType<typeof billingWorld>>;

/** A request or job that ended. */
export interface Spent {
  accountId: string;
  status: string;
  unit: Unit;
  keyId: string;
  model: string;
  kind: string;
  amount: bigint;
  at: number;
  answerId: string;
  requestId: string;
  inputTokens: bigint;
  upstream: string;
  /** Undefined: unknown. */
  upstreamCost: bigint | undefined;
  /** Tokens that were written to a cache, and calls of two kinds of tools together. */
  cacheWrites: bigint;
  toolCalls: bigint;
}

const models: readonly [operation: string, kind: string, model: string][] = [
  ["responses", "text", "chat-1"],
  ["chat", "text", "chat-2"],
  ["compact", "text", "chat-1"],
  ["speech", "speech", "voice:1"],
  ["image", "image", "image-1"],
  ["video", "video", "video-1"],
  ["music", "music", "music-1"],
];
const kinds: Record<string, HoldKind> = { text: HoldKind.TEXT, speech: HoldKind.SPEECH };

let made = 0;

/** Funds both wallets of an account. */
export async function fund(world: World, of = accountId): Promise<void> {
  for (const unit of [Unit.USD_MICROS, Unit.CREDITS]) {
    const operationId = `grant_${made++}`;
    await world.operator.grant({ accountId: of, unit, amount: 10_000_000n, operationId });
  }
}

/** Parts with prices of their own, which all of the random requests have beside others. */
const pricedParts = {
  outputImageTokens: 2n,
  priceAboveInputTokens: 200_000n,
  servedTier: "priority",
};

/** A caller's line has the parts without the upstream and its cost. An operator's has both. */
export async function expectParts(
  { billing }: World,
  line: Line | undefined,
  { upstream, upstreamCost, cacheWrites, toolCalls }: Spent,
): Promise<void> {
  const calls = { web_search: 1n, file_search: toolCalls - 1n };
  const parts = { ...pricedParts, inputCacheWriteTokens: cacheWrites, toolCalls: calls };
  const source = { upstreamCostSource: "reported" };
  expect(line?.record?.upstream).toBe("");
  expect(line?.record?.priced).toMatchObject({ ...parts, upstreamCostSource: "" });
  expect(line?.record?.priced?.upstreamCostUsdMicros).toBeUndefined();
  const { lines } = await billing.listLines({ accountId, pageSize: 1, forOperator: true });
  const [told] = lines;
  expect(told?.record?.upstream).toBe(upstream);
  const cost = upstreamCost === undefined ? { upstreamCostSource: "" } : source;
  expect(told?.record?.priced).toMatchObject({ ...parts, ...cost });
  expect(told?.record?.priced?.upstreamCostUsdMicros).toBe(upstreamCost);
}

/** Makes requests and jobs with every kind of end, some hours apart. Answers those that ended. */
export async function randomRequests(
  world: World,
  random: () => number,
  count: number,
  isAlone = true,
  of = accountId,
): Promise<Spent[]> {
  if (isAlone) await fund(world, of);
  const spent: Spent[] = [];
  for (let i = 0; i < count; i++) {
    const [operation, kind, model] = pick(random, models);
    const keyId = pick(random, ["key_a", "key_b", "key_c"]);
    const unit = kind === "text" || kind === "speech" ? Unit.USD_MICROS : Unit.CREDITS;
    const number = ++made;
    const holdId = `hold_${String(number).padStart(8, "0")}`;
    const wallet = { accountId: of, unit };
    const status = pick(random, ["completed", "completed", "failed"]);
    await world.billing.reserve({
      ...{ ...wallet, holdId, amount: 1_000n, kind: kinds[kind] ?? HoldKind.JOB, keyId },
      ...{ ref: holdId, checkTime: timestampFromMs(world.clock.now() + 1e9) },
    });
    const amount = status === "failed" ? 0n : BigInt(Math.floor(random() * 900));
    const inputTokens = BigInt(Math.floor(random() * 100));
    const [answerId, requestId] = [`resp_${number}`, `req_${number}`];
    const upstream = `secret-${1 + (number % 2)}`;
    const upstreamCost = number % 3 === 0 ? undefined : BigInt(number % 7);
    const [cacheWrites, toolCalls] = [BigInt(number % 5), BigInt(1 + (number % 4))];
    const cost =
      upstreamCost === undefined
        ? {}
        : { upstreamCostUsdMicros: upstreamCost, upstreamCostSource: "reported" };
    const record = {
      ...{ model, operation, status, upstream, inputTokens, answerId, requestId },
      priced: {
        ...pricedParts,
        ...cost,
        inputCacheWriteTokens: cacheWrites,
        toolCalls: { web_search: 1n, file_search: toolCalls - 1n },
      },
      images: kind === "image" ? 1n : 0n,
      mediaMs: kind === "video" ? 4_000n : 0n,
      finishReason: "stop",
    };
    const way = pick(random, ["draw", "settle"]);
    if (way === "draw") {
      const value = { ...wallet, holdId, amount, keyId, record };
      await world.billing.apply({ operations: [{ operation: { case: "draw", value } }] });
    } else if (amount === 0n) await world.billing.release({ ...wallet, holdId, record });
    else await world.billing.settle({ ...wallet, holdId, amount, record });
    // A repeat changes nothing.
    if (random() < 0.2) await world.billing.settle({ ...wallet, holdId, amount: 5n, record });
    const at = world.clock.now();
    spent.push({
      ...{
        accountId: of,
        status,
        unit,
        keyId,
        model,
        kind,
        amount,
        at,
        answerId,
        requestId,
        inputTokens,
      },
      ...{ upstream, upstreamCost, cacheWrites, toolCalls },
    });
    if (random() < 0.3) await world.clock.leap(Math.floor(random() * 5 * hourMs));
    if (random() < 0.1) await world.billing.listLines({ accountId: of });
  }
  return spent;
}

function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Numbers from 0 up to 1, the same for a seed. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}
