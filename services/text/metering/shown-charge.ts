import type { Awaitable } from "#kit/base/awaitable.ts";
import { inTurns, joinInTurns } from "#kit/base/in-turns.ts";
import { bytesOfBody, type JsonAnswer, type TextOperation } from "../../upstreams/text/port.ts";
import type { LargeAnswers } from "../large/index.ts";
import type { Metered } from "../paid/paid-request.ts";
import { answerWithUsage, piecesWithCost, type ShownCharge } from "./shown-usage.ts";

/**
 * The bytes of a body with its cost and the tokens that genmesh counted. An object is written once, with both. Where no thread for
 * large answers is free, this process adds the cost to bytes bit by bit. The counted tokens need the thread.
 */
export function withShownCost(
  operation: TextOperation,
  body: JsonAnswer["body"],
  charge: ShownCharge,
  large: Pick<LargeAnswers, "run">,
  payer: Pick<Metered, "accountId">,
): Awaitable<Uint8Array> {
  if (body instanceof Uint8Array) return bytesWithCost(operation, body, charge, large, payer);
  return bytesOfBody(answerWithUsage(body, operation, charge));
}

async function bytesWithCost(
  operation: TextOperation,
  body: Uint8Array,
  charge: ShownCharge,
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Promise<Uint8Array> {
  try {
    return await large.run("withUsage", { accountId }, body, operation, charge);
  } catch (error) {
    if (charge.estimate) throw error;
    return withCostInTurns(body, charge.cost);
  }
}

/** The last frames of a stream, in the same way. `inChunk`: see `lastFramesWithUsage`. */
export async function lastFramesShown(
  operation: TextOperation,
  frame: Uint8Array,
  { cost, estimate, inChunk }: ShownCharge & { inChunk: boolean },
  large: Pick<LargeAnswers, "run">,
  { accountId }: Pick<Metered, "accountId">,
): Promise<Uint8Array[]> {
  const charge = { cost, estimate };
  try {
    return await large.run("lastFrames", { accountId }, frame, operation, charge, inChunk);
  } catch (error) {
    if (estimate) throw error;
    return [await withCostInTurns(frame, cost)];
  }
}

async function withCostInTurns(json: Uint8Array, cost: bigint | undefined): Promise<Uint8Array> {
  if (cost === undefined) return json;
  const pieces = await inTurns(piecesWithCost(json, cost));
  return pieces.length === 1 ? json : joinInTurns(pieces);
}
